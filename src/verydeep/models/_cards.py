"""What was published about each network, and what had to be inferred to build it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Card:
    """One row of the table of networks.

    Attributes:
        name: For `create_model`.
        overrides: Also for `create_model`, where a row is a variant of the named network.
        dataset: What the accuracy was measured on.
        source: Table or figure of the paper, or another publication.
        published: Test accuracy in percent as its authors report it, best (mean ± standard deviation) where they do.
        inferred: What was not published, and how it is built here.
    """

    name: str
    dataset: str
    source: str
    published: str = ""
    inferred: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)


_HEAD_A = "the layout: the simplest that has the published number of parameters; dropout as in the 19-layer network"
_FITNET = "two pieces also in the fully connected layer, which gives the published count; dropout as in the highways"

CARDS = (
    *(Card("highway-mlp", "mnist", "paper, Fig. 1", overrides={"depth": d}) for d in (10, 20, 50, 100)),
    *(Card("plain-mlp", "mnist", "paper, Fig. 1", overrides={"depth": d}) for d in (10, 20, 50, 100)),
    Card("highway-mnist-16", "mnist", "paper, Table 1", "99.43 (99.40 ± 0.03)"),
    Card("highway-mnist-32", "mnist", "paper, Table 1", "99.55 (99.54 ± 0.02)"),
    Card("maxout", "cifar10", "paper, Table 2", "90.18", "the teacher: two pieces in the fully connected layer (~9M)"),
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
    Card(
        "highway-110",
        "cifar10",
        "Srivastava 2025",
        "93.96",
        "a 16-map stem and learnt projections where the width changes, which give the published number of parameters; "
        "a rectifier on the block state",
    ),
)
