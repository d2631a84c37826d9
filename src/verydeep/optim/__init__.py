"""Optimisers that torch does not offer in this form: Muon, for every kind of layer.

`Muon` is an ordinary `torch.optim.Optimizer` over parameters or parameter groups. `muon_groups` and `matrix_shapes`
tell it which parameters of a model hold matrices, and how many each holds; `verydeep.training` uses all three.
"""

from verydeep.optim._muon import Muon, matrix_shapes, muon_groups

__all__ = ["Muon", "matrix_shapes", "muon_groups"]
