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
_FITNET_BUDGET = "the widths; Romero et al. published the number of layers, parameters (250K) and multiplications (30M)"
_TEACHER = (
    "two pieces in the fully connected layer, which give the published ~9M parameters (the file of the maxout authors "
    "has five: maxout-cifar)"
)

_RESIDUAL = (
    "the paper names fixed skip connections without describing a network; this one has the width of the plain networks"
)
_LSTM = "the paper gives no formulas of its pilot experiments; these are the LSTM's, with depth in place of time"
_RECURRENT = "a classifier of images that are read row by row; its authors model language"
_DSN_MNIST = (
    "Network in Network for MNIST, whose number of parameters is the published one (350K), without its last rectifier; "
    "the authors recommend that of CIFAR-10 in their code"
)
_DASNET = (
    "what its paper leaves open, because there is no code: the network that looks is maxout-cifar, and the policy is "
    "one matrix, learnt for the cross-entropy (verydeep attend)"
)
_LIKE_CIFAR10 = "the network for CIFAR-10; its authors did not publish their file for CIFAR-100"

CARDS = (
    *(Card("highway-mlp", "mnist", "paper, Fig. 1", overrides={"depth": d}) for d in (10, 20, 50, 100)),
    *(Card("plain-mlp", "mnist", "paper, Fig. 1", overrides={"depth": d}) for d in (10, 20, 50, 100)),
    Card("residual-mlp", "mnist", "paper, Section 5", inferred=_RESIDUAL),
    Card("lstm-highway", "mnist", "paper, Section 2", inferred=_LSTM),
    Card("recurrent-highway", "mnist", "Zilly et al. 2017", inferred=_RECURRENT),
    Card("highway-mnist-16", "mnist", "paper, Table 1", "99.43 (99.40 ± 0.03)"),
    Card("highway-mnist-32", "mnist", "paper, Table 1", "99.55 (99.54 ± 0.02)"),
    Card("maxout-mnist", "mnist", "paper, Table 1", "99.55"),
    Card("dsn-mnist", "mnist", "paper, Table 1", "99.61", _DSN_MNIST),
    Card("maxout", "cifar10", "paper, Table 2", "90.18", _TEACHER),
    Card("fitnet-a", "cifar10", "paper, Table 2", "89.01", _FITNET),
    *(Card(f"fitnet-a-{n}", "cifar10", "paper, Section 3.3", inferred=_FITNET_BUDGET) for n in (9, 7, 5)),
    Card("fitnet-b", "cifar10", "paper, Table 2", "91.61", _FITNET),
    Card("highway-a", "cifar10", "paper, Table 2", "89.18", _HEAD_A),
    Card("highway-b", "cifar10", "paper, Table 2", "92.46 (92.28 ± 0.16)", "the head: fc 500 after global max pooling"),
    Card("highway-c", "cifar10", "paper, Table 2", "91.20", _HEAD_A),
    Card("maxout-cifar", "cifar10", "paper, Table 3", "90.62"),
    Card("dasnet", "cifar10", "paper, Table 3", "90.78", _DASNET),
    Card("nin", "cifar10", "paper, Table 3", "91.19"),
    Card("dsn", "cifar10", "paper, Table 3", "92.03"),
    Card("all-cnn-c", "cifar10", "paper, Table 3", "92.75"),
    Card("highway-19-nin", "cifar10", "paper, Table 3", "92.40 (92.31 ± 0.12)"),
    Card("maxout-cifar", "cifar100", "paper, Table 3", "61.42", _LIKE_CIFAR10, {"classes": 100}),
    Card("dasnet", "cifar100", "paper, Table 3", "66.22", _DASNET, {"classes": 100}),
    Card("nin", "cifar100", "paper, Table 3", "64.32", overrides={"classes": 100}),
    Card("dsn", "cifar100", "paper, Table 3", "65.43", overrides={"classes": 100}),
    Card("all-cnn-c", "cifar100", "paper, Table 3", "66.29", overrides={"classes": 100}),
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
