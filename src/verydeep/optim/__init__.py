"""Optimisers that torch does not offer in this form: Muon, for every kind of layer, and SNES, which needs no gradients.

`Muon` is an ordinary `torch.optim.Optimizer` over parameters or parameter groups. `muon_groups` sorts the parameters of
a model into groups for it: hidden matrices, and everything else. `SNES` searches for a vector of low loss.
"""

from verydeep.optim._muon import Muon, muon_groups
from verydeep.optim._snes import SNES

__all__ = ["SNES", "Muon", "muon_groups"]
