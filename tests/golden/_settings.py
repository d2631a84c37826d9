"""What the golden results were computed with. Every setting is given, so that a new default changes none of them."""

from copy import deepcopy
from typing import Any

Settings = dict[str, Any]

_BASE: Settings = {
    "data": {
        "source": "digits",
        "target": None,
        "test": None,
        "validation": 0.2,
        "test_path": None,
        "valid_path": None,
        "seed": 1,
        "preprocess": "paper",
        "augment": {"pad": 0, "mirror": False, "rotate": 0.0, "scale": 0.0},
        "image_size": None,
        "channels": None,
        "verify": False,
        "categorical": [],
        "ignore": [],
        "delimiter": ",",
    },
    "model": {
        "name": "highway-mlp",
        "depth": 10,
        "width": 16,
        "activation": "tanh",
        "gate_bias": -1.0,
        "carry": "coupled",
        "blocks": None,
        "dropout": None,
    },
    "optim": {
        "name": "sgd",
        "lr": 0.3,
        "momentum": 0.9,
        "nesterov": False,
        "weight_decay": 0.0,
        "bias_lr": 1.0,
        "classifier_decay": 1.0,
        "clip": None,
    },
    "schedule": {"name": "exponential", "factor": 0.9, "milestones": [], "warmup": 0.0},
    "distill": {
        "teacher": None,
        "hint_epochs": 0,
        "hint": None,
        "guided": None,
        "temperature": 3.0,
        "weight": 4.0,
        "final_weight": 1.0,
    },
    "epochs": 5,
    "batch_size": 50,
    "seed": 3,
    "label_smoothing": 0.0,
    "ema_half_life": None,
    "evaluate_train": True,
    "evaluate_test": True,
    "patience": None,
    "divergence_factor": 100.0,
    "checkpoint_every": 60.0,
    "device": "cpu",
    "threads": 1,
    "precision": "float32",
    "compile": False,
    "checkpoint_activations": False,
}


def _with(base: Settings, changes: Settings) -> Settings:
    result = deepcopy(base)
    for name, value in changes.items():
        result[name] = _with(result[name], value) if isinstance(value, dict) and name in result else value
    return result


FULLY_CONNECTED = _BASE

CONVOLUTIONAL = _with(
    _BASE,
    {
        "data": {"validation": None, "augment": {"pad": 1, "rotate": 5.0, "scale": 0.1}},
        "model": {
            "name": "highway-mnist-16",
            "depth": None,
            "width": None,
            "activation": None,
            "gate_bias": -4.0,
            "carry": None,
            "dropout": 0.0,
        },
        "optim": {"lr": 0.1, "nesterov": True, "weight_decay": 0.0001, "bias_lr": 2.0, "classifier_decay": 10.0},
        "schedule": {"name": "multistep", "factor": 0.1, "milestones": [2]},
        "epochs": 3,
        "batch_size": 100,
        "seed": 4,
    },
)

DROPOUT = _with(
    CONVOLUTIONAL,
    {
        "model": {"dropout": 0.5},
        "optim": {"name": "muon", "lr": 0.02, "nesterov": False},
        "schedule": {"name": "one-cycle", "warmup": 0.3, "milestones": []},
        "epochs": 2,
    },
)

TWO_SEEDS = _with(
    _BASE,
    {
        "model": {"depth": 6, "activation": "relu", "gate_bias": -1.5, "carry": "independent"},
        "optim": {"name": "adam", "lr": 0.005, "weight_decay": 0.01, "clip": 1.0},
        "schedule": {"name": "cosine", "warmup": 0.2},
        "epochs": 3,
        "seed": 11,
        "label_smoothing": 0.1,
        "ema_half_life": 0.5,
    },
)

SEARCH = _with(
    _BASE,
    {
        "schedule": {"name": "constant"},
        "epochs": 3,
        "seed": 5,
        "divergence_factor": 3.0,
        "search": {
            "metric": "valid_loss",
            "sampler": "random",
            "seed": 4,
            "trials": 6,
            "halving": {"first": 1, "keep": 2},
            "space": {
                "optim": {"lr": {"low": 0.02, "high": 4.0, "log": True}},
                "model": {
                    "depth": {"low": 3, "high": 9},
                    "activation": {"choices": ["tanh", "relu"]},
                    "gate_bias": {"low": -4.0, "high": -1.0},
                },
            },
        },
    },
)
