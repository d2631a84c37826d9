"""Optimisers that torch does not offer in this form: Muon, for every kind of layer.

`Muon` is an ordinary `torch.optim.Optimizer` over parameters or parameter groups. `muon_groups` sorts the parameters of
a model into groups for it: hidden matrices, and everything else.
"""

from verydeep.optim._muon import Muon, muon_groups

__all__ = ["Muon", "muon_groups"]
