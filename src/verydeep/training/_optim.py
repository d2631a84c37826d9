"""The optimiser, and its learning rate at every step."""

from typing import Any

import torch
from torch import nn

from verydeep.errors import UserError
from verydeep.nn import parameter_groups
from verydeep.optim import Muon, matrix_shapes, muon_groups
from verydeep.training._config import OptimConfig


def make_optimiser(model: nn.Module, config: OptimConfig) -> torch.optim.Optimizer:
    """SGD, Adam or Muon over the paper's parameter groups."""
    groups = parameter_groups(
        model,
        config.lr,
        config.weight_decay,
        bias_lr=config.bias_lr,
        classifier_decay=config.classifier_decay,
    )
    if not groups:
        raise UserError("the module has no parameters that require gradients: there is nothing to train")
    groups = muon_groups(groups, model) if config.name == "muon" else _merged(groups)
    for group in groups:
        group["base_lr"] = group["lr"]
    if config.name == "muon":
        return Muon(groups, config.lr, config.momentum, config.nesterov, shapes=matrix_shapes(model))
    fused = all(_fusible(parameter) for group in groups for parameter in group["params"])
    if config.name == "adam":
        return torch.optim.AdamW(groups, config.lr, fused=fused)
    return torch.optim.SGD(groups, config.lr, config.momentum, nesterov=config.nesterov, fused=fused)


def add_parameters(optimiser: torch.optim.Optimizer, module: nn.Module, config: OptimConfig) -> None:
    """Let it update another module too, by the same rules."""
    groups = parameter_groups(module, config.lr, config.weight_decay, bias_lr=config.bias_lr)
    for group in muon_groups(groups, module) if config.name == "muon" else groups:
        optimiser.add_param_group(group | {"base_lr": group["lr"]})


def _merged(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours with the same rules as one group, in the same order: torch takes as long to call as to update."""
    found: list[dict[str, Any]] = []
    for group in groups:
        if found and all(found[-1][key] == group[key] for key in ("lr", "weight_decay")):
            found[-1]["params"] += group["params"]
        else:
            found.append(group)
    return found


def _fusible(parameter: nn.Parameter) -> bool:
    """Whether torch updates it in one pass over memory, several times faster than one operation after the other."""
    return parameter.device.type in ("cpu", "cuda") and parameter.is_floating_point() and not parameter.is_sparse


def set_rate(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Scale the learning rate of every group."""
    for group in optimiser.param_groups:
        group["lr"] = factor * group["base_lr"]
