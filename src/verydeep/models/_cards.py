"""What was published about the named networks, and how large they are, for listings; read without torch.

`sizes.json` holds the size of each network, counted on the network itself: `tests/models/test_listing.py` compares.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Card:
    """One row of the table of networks.

    Attributes:
        name: The name for `create_model`.
        overrides: Arguments for `create_model` if the row is a variant of the named network.
        dataset: The dataset on which the accuracy was measured.
        source: Table or figure of the paper, another publication, or ours.
        published: Test accuracy in percent as its authors report it: the best (mean ± standard deviation), or one
            number.
        inferred: What was not published, and how it is built here.
    """

    name: str
    dataset: str
    source: str
    published: str = ""
    inferred: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)


_HEAD_A = "the layout (the simplest one with the published number of parameters); dropout as in the 19-layer network"
_FITNET = (
    "two pieces in the fully connected layer, which give the published number of parameters (the authors' file has "
    "five); dropout as in the highway networks (theirs has none)"
)
_TEACHER = (
    "two pieces in the fully connected layer, which give the published ~9M parameters (the file of the maxout authors "
    "has five: maxout-cifar)"
)

CARDS = (
    *(Card("highway-mlp", "mnist", "paper, Fig. 1", overrides={"depth": d}) for d in (10, 20, 50, 100)),
    *(Card("plain-mlp", "mnist", "paper, Fig. 1", overrides={"depth": d}) for d in (10, 20, 50, 100)),
    Card("highway-mnist-16", "mnist", "paper, Table 1", "99.43 (99.40 ± 0.03)"),
    Card("highway-mnist-32", "mnist", "paper, Table 1", "99.55 (99.54 ± 0.02)"),
    Card("maxout", "cifar10", "paper, Table 2", "90.18", _TEACHER),
    Card("fitnet-a", "cifar10", "paper, Table 2", "89.01", _FITNET),
    Card("fitnet-b", "cifar10", "paper, Table 2", "91.61", _FITNET),
    Card("highway-a", "cifar10", "paper, Table 2", "89.18", _HEAD_A),
    Card("highway-b", "cifar10", "paper, Table 2", "92.46 (92.28 ± 0.16)", "the head: fc 500 after global max pooling"),
    Card("highway-c", "cifar10", "paper, Table 2", "91.20", _HEAD_A),
    Card("nin", "cifar10", "paper, Table 3", "91.19"),
    Card("all-cnn-c", "cifar10", "paper, Table 3", "92.75"),
    Card("highway-19-nin", "cifar10", "paper, Table 3", "92.40 (92.31 ± 0.12)"),
    Card("highway-19-nin", "cifar100", "paper, Table 3", "67.76 (67.61 ± 0.15)", overrides={"classes": 100}),
    Card("resnet-110", "cifar10", "Srivastava 2025", "93.75"),
    Card("highway-110", "cifar10", "Srivastava 2025", "93.96"),
    Card("highway-conv", "images of any size", "ours"),
    Card("plain-conv", "images of any size", "ours"),
)


@dataclass(frozen=True, kw_only=True)
class ModelInfo(Card):
    """What `list_models` says about a network.

    Attributes:
        name: The name for `create_model`.
        dataset: The dataset on which the accuracy was measured.
        source: Table or figure of the paper, another publication, or ours.
        published: Test accuracy in percent as its authors report it: the best (mean ± standard deviation), or one
            number.
        inferred: What was not published, and how it is built here.
        overrides: Arguments for `create_model` if this is a variant of the named network.
        layers: Number of layers as the paper counts them: of fully connected networks the hidden ones, the `depth` of
            `create_model`; of convolutional networks all layers with weights, the output layer included.
        parameters: Number of trainable parameters.
        multiply_adds: Number of multiply-adds per sample in matrix multiplications and convolutions.

    Example:
        >>> from verydeep.models import list_models
        >>> {model.name: model.published for model in list_models()}["highway-c"]
        '91.20'
    """

    layers: int
    parameters: int
    multiply_adds: int


def list_models() -> list[ModelInfo]:
    """All named networks with the variants used in the paper, in the order of the paper.

    Example:
        >>> from verydeep.models import list_models
        >>> model = list_models()[0]
        >>> model.name, model.layers, model.parameters
        ('highway-mlp', 10, 85660)
    """
    return [ModelInfo(**vars(card), **_sizes()[signature(card)]) for card in CARDS]


def signature(card: Card) -> str:
    """The name of a network with its overrides: `highway-mlp depth=10`."""
    return " ".join([card.name, *(f"{name}={value}" for name, value in card.overrides.items())])


@cache
def _sizes() -> dict[str, dict[str, Any]]:
    sizes: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "sizes.json").read_text())
    return sizes
