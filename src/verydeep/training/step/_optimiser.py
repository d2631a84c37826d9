"""The optimiser of a run, and its learning rate at each step."""

from typing import Any

import torch
from torch import nn

from verydeep.errors import UserError
from verydeep.nn import parameter_groups
from verydeep.optim import Muon, muon_groups
from verydeep.training._config import OptimConfig


def make_optimiser(
    model: nn.Module, config: OptimConfig, extra: nn.Module | None = None, extra_lr: float = 1.0
) -> torch.optim.Optimizer:
    """SGD, Adam or Muon over the paper's parameter groups.

    Args:
        model: The network.
        config: The settings.
        extra: A module that is updated by the same rules, in groups that follow those of the network.
        extra_lr: Multiplier of its learning rate.
    """
    groups = parameter_groups(
        model,
        config.lr,
        config.weight_decay,
        bias_lr=config.bias_lr,
        bias_decay=config.bias_decay,
        classifier=_output_layer(model) if config.classifier_lr != 1 else None,
        classifier_decay=config.classifier_decay,
        classifier_lr=config.classifier_lr,
    )
    if not groups:
        raise UserError("the module has no parameters that require gradients: there is nothing to train")
    groups = muon_groups(model, groups) if config.name == "muon" else _merge(groups)
    optimiser = _make(_with_base_rate(groups), config)
    if extra is not None:
        groups = parameter_groups(extra, extra_lr * config.lr, config.weight_decay, bias_lr=config.bias_lr)
        for group in _with_base_rate(muon_groups(extra, groups) if config.name == "muon" else groups):
            optimiser.add_param_group(group)
    return optimiser


def set_learning_rate(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Set the learning rate of every group to `factor` times the one it was configured with."""
    for group in optimiser.param_groups:
        group["lr"] = factor * group["base_lr"]


def clip_gradients(optimiser: torch.optim.Optimizer, norm: float) -> None:
    """Scale the gradients of everything the optimiser updates down to a norm, if they exceed it."""
    nn.utils.clip_grad_norm_([p for group in optimiser.param_groups for p in group["params"]], norm)


def _make(groups: list[dict[str, Any]], config: OptimConfig) -> torch.optim.Optimizer:
    if config.name == "muon":
        return Muon(groups, config.lr, config.momentum, config.nesterov)
    fused = all(_is_fusible(parameter) for group in groups for parameter in group["params"])
    if config.name == "adam":
        return torch.optim.AdamW(groups, config.lr, fused=fused)
    return torch.optim.SGD(groups, config.lr, config.momentum, nesterov=config.nesterov, fused=fused)


def _with_base_rate(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [group | {"base_lr": group["lr"]} for group in groups]


def _output_layer(model: nn.Module) -> nn.Module:
    """The classifier or, in a network that ends in global pooling, the last layer with weights."""
    classifier = getattr(model, "classifier", None)
    layers = [module for module in model.modules() if isinstance(module, nn.Linear | nn.Conv2d)]
    if isinstance(classifier, nn.Module):
        return classifier
    if not layers:
        raise UserError("optim.classifier_lr needs a network that ends in a linear layer or a convolution")
    return layers[-1]


def _merge(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join neighbouring groups with the same rules: for torch, a call costs as much as an update."""
    merged: list[dict[str, Any]] = []
    for group in groups:
        if merged and all(merged[-1][key] == group[key] for key in ("lr", "weight_decay")):
            merged[-1]["params"] += group["params"]
        else:
            merged.append(group)
    return merged


def _is_fusible(parameter: nn.Parameter) -> bool:
    """Whether torch can update it in a single pass over memory, which is several times faster."""
    return parameter.device.type in ("cpu", "cuda") and parameter.is_floating_point() and not parameter.is_sparse
