"""What a short recipe could do better: one change at a time from a base, judged by validation data.

The base has the authors' settings with the one change that shortening them needs: the learning rate rises and then
falls to zero within the epochs there are. The test set is never looked at.
"""

from dataclasses import dataclass, field

from verydeep.errors import unknown
from verydeep.experiments._recipes import read_recipe
from verydeep.search import Settings, with_settings
from verydeep.training import TrainConfig

BASE = "base"


@dataclass(frozen=True)
class Variation:
    """One change.

    Attributes:
        name: Of its runs, and for `--only`.
        words: What is changed.
        settings: The fields that differ from the base.
    """

    name: str
    words: str
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A base and its variations.

    Attributes:
        name: Of its results.
        title: What is trained.
        row: Whose `paper` recipe the base starts from.
        base: What the base changes in it.
        words: The base in words.
        variations: The base is the first.
    """

    name: str
    title: str
    row: str
    base: Settings
    words: str
    variations: tuple[Variation, ...]

    def config(self, variation: Variation, epochs: int) -> TrainConfig:
        """The configuration of a variation at a length; milestones are shares of a hundred until then."""
        config = with_settings(read_recipe(self.row, "paper"), self.base | {"epochs": epochs} | variation.settings)
        if config.schedule.name != "multistep":
            return config
        milestones = sorted({max(1, share * epochs // 100) for share in config.schedule.milestones})
        return with_settings(config, {"schedule.milestones": tuple(milestones)})

    def chosen(self, only: str | None) -> tuple[Variation, ...]:
        """The variations named, separated by commas, and the base; all unless given."""
        known = {variation.name: variation for variation in self.variations}
        names = list(known) if only is None else [BASE, *(name.strip() for name in only.split(","))]
        for name in names:
            if name not in known:
                raise unknown(f"variation of {self.name}", name, known)
        return tuple(known[name] for name in known if name in names)


def _each(field: str, words: str, *values: float) -> list[Variation]:
    return [Variation(f"{words.replace(' ', '-')}-{value:g}", f"{words} {value:g}", {field: value}) for value in values]


_CYCLE: Settings = {"schedule.name": "one-cycle", "schedule.warmup": 0.2, "schedule.milestones": ()}
_SHARED = [
    Variation(BASE, "the base"),
    Variation("linear", "straight down to zero, no warm-up", {"schedule.warmup": 0.0}),
    Variation("cosine", "cosine down to zero after the same warm-up", {"schedule.name": "cosine"}),
    *_each("schedule.warmup", "warm-up", 0.4),
    *_each("optim.momentum", "momentum", 0.8, 0.95),
    *_each("optim.bias_lr", "bias rate x", 1.0),
    *_each("optim.classifier_decay", "classifier decay x", 1.0),
    *_each("model.dropout", "dropout x", 0.0, 0.25, 0.5),
    *_each("label_smoothing", "label smoothing", 0.05, 0.1),
    *_each("average", "average half-life", 0.25, 1.0),
]

MNIST = Study(
    "mnist",
    "MNIST, highway-mnist-16: trained on 50,000 images, validated on 10,000",
    "highway-mnist-16",
    _CYCLE | {"data.validation": "paper", "evaluate_test": False, "optim.lr": 0.03},
    "batches of 100, Nesterov momentum 0.9, one cycle with a warm-up of 0.2 to a learning rate of 0.03, weight decay "
    "0.001 (x 10 on the classifier), bias rate x 2, the paper's dropout, no augmentation, gate bias -1",
    (
        *_SHARED,
        Variation("steps", "the paper's steps: x 0.1 after a third and two thirds, from 0.01",
                  {"schedule.name": "multistep", "schedule.milestones": (33, 66), "optim.lr": 0.01}),
        *_each("optim.lr", "learning rate", 0.01, 0.06, 0.1),
        *_each("batch_size", "batch", 50, 200),
        *_each("optim.weight_decay", "weight decay", 0.0, 0.0001, 0.0005, 0.002),
        *_each("data.augment.pad", "translation", 1, 2, 3),
        *_each("model.gate_bias", "gate bias", 0.0, -2.0, -3.0),
    ),
)  # fmt: skip
CIFAR = Study(
    "cifar10",
    "CIFAR-10, highway-a: trained on 45,000 images, validated on 5,000",
    "highway-a",
    _CYCLE | {"data.validation": 5000, "evaluate_test": False, "optim.lr": 0.05},
    "batches of 100, Nesterov momentum 0.9, one cycle with a warm-up of 0.2 to a learning rate of 0.05, weight decay "
    "0.001 (x 10 on the classifier), bias rate x 2, the paper's dropout, translation by up to 8 pixels and mirroring, "
    "gate bias -1",
    (
        *_SHARED,
        Variation("steps", "the paper's steps: x 0.1 after 50, 75 and 88 %, from 0.025",
                  {"schedule.name": "multistep", "schedule.milestones": (50, 75, 88), "optim.lr": 0.025}),
        *_each("optim.lr", "learning rate", 0.025, 0.1, 0.2),
        *_each("batch_size", "batch", 50, 200),
        *_each("optim.weight_decay", "weight decay", 0.0, 0.0001, 0.0005, 0.002),
        *_each("data.augment.pad", "translation", 0, 2, 4),
        Variation("no-mirror", "no mirroring", {"data.augment.mirror": False}),
        *_each("model.gate_bias", "gate bias", 0.0, -2.0, -3.0),
    ),
)  # fmt: skip
STUDIES = {study.name: study for study in (MNIST, CIFAR)}
