"""What the studies vary: a base recipe and one change at a time, compared on validation data.

A few earlier trials suggested the base: a high learning rate that rises and falls to zero within the epochs, and little
regularisation. Some changes restore the authors' own settings. Changes that seemed to help in a few epochs are
combined, and the combination is varied in turn, at the length of the recipe. The test set is never used.
"""

from dataclasses import dataclass, field

from verydeep.errors import unknown
from verydeep.paper._recipes import read_recipe
from verydeep.studies import Settings, with_settings
from verydeep.training import TrainConfig

BASE = "base"


@dataclass(frozen=True)
class Variation:
    """One change of a recipe.

    Attributes:
        name: Name of its runs and scores, also for `--only`.
        description: What is changed, in words.
        settings: The fields that differ from the base.
        reference: The variation that it changes and is compared with.
    """

    name: str
    description: str
    settings: Settings = field(default_factory=dict)
    reference: str = BASE


@dataclass(frozen=True)
class RecipeStudy:
    """A base recipe and its variations.

    Attributes:
        name: Name of its scores.
        title: Network, data and split, in words.
        row: Row of the tables whose `paper` recipe the base starts from.
        base: The settings that the base changes in it.
        base_description: The base in words.
        conclusion: What we conclude from the scores, in words.
        variations: The variations, starting with the base itself.
    """

    name: str
    title: str
    row: str
    base: Settings
    base_description: str
    conclusion: str
    variations: tuple[Variation, ...]

    def config(self, variation: Variation, epochs: int) -> TrainConfig:
        """The configuration of a variation at a length; the milestones of its settings are percentages of it."""
        config = with_settings(read_recipe(self.row, "paper"), self.base | {"epochs": epochs} | variation.settings)
        if config.schedule.name != "multistep":
            return config
        milestones = sorted({max(1, round(share * epochs / 100)) for share in config.schedule.milestones})
        return with_settings(config, {"schedule.milestones": tuple(milestones)})

    def selected(self, only: str | None) -> tuple[Variation, ...]:
        """The variations named in a comma-separated list; by default, all."""
        known = {variation.name: variation for variation in self.variations}
        names = list(known) if only is None else [name.strip() for name in only.split(",")]
        for name in names:
            if name not in known:
                raise unknown(f"variation of {self.name}", name, known)
        return tuple(known[name] for name in known if name in names)


def _each(field: str, name: str, *values: float, description: str = "") -> list[Variation]:
    """A variation per value of a field; by default, the name is also the description."""
    stem, description = name.replace(" ", "-"), description or name
    return [Variation(f"{stem}-{value:g}", f"{description} {value:g}", {field: value}) for value in values]


def _clipped(*rates: float) -> list[Variation]:
    words = "gradient norm clipped to 1 and learning rate"
    return [Variation(f"clip-rate-{lr:g}", f"{words} {lr:g}", {"optim.clip": 1.0, "optim.lr": lr}) for lr in rates]


def _changed(variation: Variation, *changes: Variation) -> list[Variation]:
    """A variation, and further changes of it, one at a time."""
    name, settings = variation.name, variation.settings
    return [variation, *(Variation(f"{name}-{c.name}", c.description, settings | c.settings, name) for c in changes)]


_BASE: Settings = {
    "schedule.name": "one-cycle",
    "schedule.warmup": 0.2,
    "schedule.milestones": (),
    "optim.classifier_decay": 1.0,
    "model.dropout": 0.0,
    "evaluate_test": "never",
}
_WORDS = (
    "batches of 100, Nesterov momentum 0.9, one-cycle schedule (20 % warm-up) with a peak learning rate of {lr}, "
    "weight decay {decay}, bias learning rate x 2, no dropout, no label smoothing, no weight averaging, {augment}, "
    "gate bias -1"
)
_SHARED = [
    Variation(BASE, "the base"),
    Variation("linear", "linear decay to zero, no warm-up", {"schedule.warmup": 0.0}),
    *_each("batch_size", "batch", 50, 200),
    *_each("optim.momentum", "momentum", 0.95),
    *_each("optim.bias_lr", "bias rate x", 1.0, description="bias learning rate x"),
    *_each("optim.classifier_decay", "classifier decay x", 10.0),
    *_each("model.dropout", "dropout x", 0.5, 1.0),
    *_each("label_smoothing", "label smoothing", 0.1),
    *_each("ema_half_life", "average half-life", 1.0, description="weight averaging with half-life"),
    *_each("model.gate_bias", "gate bias", 0.0, -2.0),
]

_TURNED = "translation 1, rotation by up to 10 degrees, scaling by up to 0.1"
_TURN: Settings = {"data.augment.pad": 1, "data.augment.rotate": 10.0, "data.augment.scale": 0.1}

MNIST = RecipeStudy(
    "mnist",
    "MNIST, highway-mnist-16: trained on 50,000 images, validated on 10,000",
    "highway-mnist-16",
    _BASE | {"data.validation": "paper", "optim.lr": 0.2, "optim.weight_decay": 0.0002, "data.augment.pad": 2},
    _WORDS.format(lr=0.2, decay=0.0002, augment="translation by up to 2 pixels"),
    "a short recipe needs a high learning rate, and a network without normalisation tolerates one only after a warm-up "
    "and with clipped gradients. In so few epochs, dropout and large batches cost more than they gain; rotating, "
    "scaling and shifting the images a little works better than dropout.",
    (
        *_SHARED,
        Variation("steps", "the paper's steps: x 0.1 after a third and two thirds, from 0.01",
                  {"schedule.name": "multistep", "schedule.milestones": (33, 66), "optim.lr": 0.01}),
        *_each("optim.lr", "learning rate", 0.05, 0.1, 0.4),
        *_each("optim.weight_decay", "weight decay", 0.0, 0.0005, 0.001),
        *_each("data.augment.pad", "translation", 0, 1, 3),
        *_changed(
            Variation("combined", "the combination: learning rate 0.1, label smoothing 0.1, gate bias -2",
                      {"optim.lr": 0.1, "label_smoothing": 0.1, "model.gate_bias": -2.0}),
            *_each("model.dropout", "dropout x", 0.5),
            *_each("data.augment.pad", "translation", 0, 1),
            *_each("optim.weight_decay", "weight decay", 0.001),
            *_each("label_smoothing", "label smoothing", 0.0),
            *(Variation(f"translation-{pad}-dropout-{factor:g}", f"translation {pad} and dropout x {factor:g}",
                        {"data.augment.pad": pad, "model.dropout": factor})
              for pad, factor in ((0, 0.5), (0, 1.0), (1, 0.5))),
            *_clipped(0.2, 0.4),
            Variation("turned", _TURNED, _TURN),
            *(Variation(f"turned-{clipped.name}", f"{_TURNED}, {clipped.description}", _TURN | clipped.settings)
              for clipped in _clipped(0.2, 0.4)),
        ),
    ),
)  # fmt: skip
_MUON_WORDS = "the combination: Muon, learning rate 0.015, decoupled weight decay 0.01"
_MUON: Settings = {"optim.name": "muon", "optim.lr": 0.015, "optim.weight_decay": 0.01}

CIFAR = RecipeStudy(
    "cifar10",
    "CIFAR-10, highway-a: trained on 45,000 images, validated on 5,000",
    "highway-a",
    _BASE | {"data.validation": 5000, "optim.lr": 0.1, "optim.weight_decay": 0.0005, "data.augment.pad": 4},
    _WORDS.format(lr=0.1, decay=0.0005, augment="translation by up to 4 pixels and mirroring"),
    "SGD fits too slowly, and neither its learning rate nor its batch size makes up for it. Muon at a learning rate of "
    "0.015 and label smoothing on top of it each gained about the same; at half or twice that rate, most of the "
    "gain is lost. A recipe that fits faster also memorises sooner: after 24 epochs a weight decay of 0.1 was better "
    "than 0.03; 0.01 was not tried at that length. The paper trains with SGD; the recipes that use Muon say so.",
    (
        *_SHARED,
        Variation("steps", "the paper's steps: x 0.1 after 50, 75 and 88 %, from 0.025",
                  {"schedule.name": "multistep", "schedule.milestones": (50, 75, 88), "optim.lr": 0.025}),
        *_each("optim.lr", "learning rate", 0.05, 0.2, 0.4),
        Variation("batch-50-rate-0.05", "batch 50 and learning rate 0.05", {"batch_size": 50, "optim.lr": 0.05}),
        *_each("optim.weight_decay", "weight decay", 0.0, 0.0002, 0.001),
        *_each("data.augment.pad", "translation", 0, 2, 8),
        Variation("no-mirror", "no mirroring", {"data.augment.mirror": False}),
        *_each("optim.clip", "gradient at most", 1.0, description="gradient norm clipped to"),
        *_clipped(0.4),
        *_changed(
            Variation("combined", "the combination: gradient norm clipped to 1, learning rate 0.2",
                      {"optim.clip": 1.0, "optim.lr": 0.2}),
            *_each("label_smoothing", "label smoothing", 0.1),
            *_each("optim.weight_decay", "weight decay", 0.0002, 0.001),
            *_each("model.dropout", "dropout x", 0.5),
            *_each("optim.momentum", "momentum", 0.95),
        ),
        Variation("muon", _MUON_WORDS, _MUON),
        *_changed(
            Variation("muon-label-smoothing-0.1", f"{_MUON_WORDS}, label smoothing 0.1",
                      _MUON | {"label_smoothing": 0.1}, "muon"),
            *_each("optim.lr", "learning rate", 0.0075, 0.03),
            *_each("optim.weight_decay", "weight decay", 0.03, 0.1),
            *_each("optim.momentum", "momentum", 0.95),
            *_each("batch_size", "batch", 50),
            *_each("data.augment.pad", "translation", 2),
            *_each("model.gate_bias", "gate bias", 0.0),
            *_each("ema_half_life", "average half-life", 1.0, description="weight averaging with half-life"),
        ),
    ),
)  # fmt: skip
DEEP_CIFAR = RecipeStudy(
    "highway-b",
    "CIFAR-10, highway-b: trained on 45,000 images, validated on 5,000",
    "highway-b",
    _BASE
    | {"data.validation": 5000, "data.augment.pad": 4, "label_smoothing": 0.1}
    | {"optim.name": "muon", "optim.lr": 0.015, "optim.weight_decay": 0.1},
    "the recipe of Highway A: batches of 100, Muon with Nesterov momentum 0.9, one-cycle schedule (20 % warm-up) with "
    "a peak learning rate of 0.015, decoupled weight decay 0.1, bias learning rate x 2, no dropout, label smoothing "
    "0.1, translation by up to 4 pixels and mirroring, gate bias -2",
    "a few epochs show whether the learning rate suits a deeper and wider network; they say little about weight decay, "
    "whose effect appears at the end of a long run.",
    (
        Variation(BASE, "the base"),
        *_each("optim.lr", "learning rate", 0.0075, 0.03),
        *_each("optim.weight_decay", "weight decay", 0.05, 0.2),
    ),
)
STUDIES = {study.name: study for study in (MNIST, CIFAR, DEEP_CIFAR)}
