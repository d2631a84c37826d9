"""Parameter groups with the settings of the authors' published code."""

from typing import Any

from torch import nn


def parameter_groups(
    model: nn.Module,
    lr: float,
    weight_decay: float = 0.0,
    *,
    bias_lr: float = 2.0,
    bias_decay: float = 0.0,
    classifier: nn.Module | None = None,
    classifier_decay: float = 10.0,
    classifier_lr: float = 1.0,
) -> list[dict[str, Any]]:
    """Groups for a torch optimiser: weights, biases (`bias_lr` times the rate), and the classifier's weights.

    Args:
        model: The model. Each trainable parameter is in exactly one group; gate biases count as biases.
        lr: Learning rate of the weights.
        weight_decay: Weight decay of the weights.
        bias_lr: Multiplier of the learning rate for biases.
        bias_decay: Multiplier of the weight decay for biases.
        classifier: The module whose weights get `classifier_decay` times the decay; `model.classifier` by default.
        classifier_decay: Multiplier of the weight decay for the classifier's weights.
        classifier_lr: Multiplier of the learning rate for the classifier, whose biases then form a group of their own.

    Example:
        >>> import torch
        >>> from verydeep.models import create_model
        >>> from verydeep.nn import parameter_groups
        >>> groups = parameter_groups(create_model("highway-mlp", depth=3, width=4), lr=0.1, weight_decay=1e-4)
        >>> [(group["name"], group["lr"], group["weight_decay"]) for group in groups]
        [('weights', 0.1, 0.0001), ('biases', 0.2, 0.0), ('classifier', 0.1, 0.001)]
        >>> optimiser = torch.optim.SGD(groups, momentum=0.9)
    """
    classifier = classifier or getattr(model, "classifier", None)
    last = {id(p) for p in classifier.parameters()} if classifier is not None else set()
    groups: dict[str, list[nn.Parameter]] = {"weights": [], "biases": [], "classifier": [], "classifier biases": []}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            groups[_group(name, id(parameter) in last, classifier_lr != 1)].append(parameter)
    biases = {"lr": bias_lr * lr, "weight_decay": bias_decay * weight_decay}
    settings = {
        "weights": {"lr": lr, "weight_decay": weight_decay},
        "biases": biases,
        "classifier": {"lr": classifier_lr * lr, "weight_decay": classifier_decay * weight_decay},
        "classifier biases": biases | {"lr": classifier_lr * bias_lr * lr},
    }
    return [{"name": name, "params": groups[name]} | settings[name] for name in groups if groups[name]]


def _group(name: str, in_classifier: bool, own_rate: bool) -> str:
    if _is_bias(name):
        return "classifier biases" if in_classifier and own_rate else "biases"
    return "classifier" if in_classifier else "weights"


def _is_bias(name: str) -> bool:
    """Whether a parameter is named `bias`, or like `bias_ih_l0` of recurrent and `in_proj_bias` of attention layers."""
    last = name.rpartition(".")[2]
    return last == "bias" or last.startswith("bias_") or last.endswith("_bias")
