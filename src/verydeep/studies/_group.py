"""Groups: the trainings of a study that share a configuration and differ in their seed or in searched settings."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from verydeep.config import dotted, from_dict, to_dict
from verydeep.errors import UserError
from verydeep.studies._halving import Halving, Stages
from verydeep.studies._space import Space, read_space, space_tables, with_current_names
from verydeep.training import TrainConfig

_FORMAT = 1
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\\:*?\"<>|]+")  # what every file system accepts


@dataclass(frozen=True)
class Sampling:
    """Settings drawn from a space, for each training of a group.

    Attributes:
        space: The settings that vary, by name.
        trials: The number of trainings.
        seed: Seed for drawing settings.
        sampler: `random` (as in the paper) or `tpe` (Optuna's sampler, which learns from earlier trainings).

    Example:
        >>> from verydeep.studies import Choices, Sampling
        >>> Sampling({"model.depth": Choices((5, 10))}, trials=20).sampler
        'random'
    """

    space: Space
    trials: int
    seed: int = 0
    sampler: Literal["random", "tpe"] = "random"


@dataclass(frozen=True)
class Group:
    """Trainings that share a configuration: one for each seed, one for each drawn setting, or a single one.

    A training is known by its name, which is also the path of its run below the study's folder: `NAME/seed-3`,
    `NAME/0003`, or `NAME` for a single training. A group with an empty name puts its runs directly into the folder.

    Attributes:
        name: The group's name.
        config: The configuration that all its trainings share.
        seeds: The seeds, for a training per seed; with `data.folds` in the configuration, each holds out the fold
            `seed % folds`, so that as many seeds as folds are a cross-validation.
        sampling: What is searched, for a training per drawn setting.
        halving: Train only the best to the end: `Halving` or `Stages`.
        epochs: Pause after this epoch; by default, train to the end of the configuration.
        after: The name of the training that must finish first, whose network is the teacher of these.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.studies import Group
        >>> from verydeep.training import TrainConfig
        >>> group = Group("deep", TrainConfig(DataConfig("digits")), seeds=(0, 1))
        >>> group.training_names
        ['deep/seed-0', 'deep/seed-1']
    """

    name: str
    config: TrainConfig
    seeds: tuple[int, ...] | None = None
    sampling: Sampling | None = None
    halving: Halving | Stages | None = None
    epochs: int | None = None
    after: str | None = None

    def __post_init__(self) -> None:
        if self.seeds is not None and self.sampling is not None:
            raise UserError(f"group '{self.name}': give seeds or a sampling, not both")
        if self.seeds is not None and (not self.seeds or len(set(self.seeds)) < len(self.seeds)):
            raise UserError(f"group '{self.name}': give at least one seed, and each once")
        if self.seeds is not None and self.config.data.fold != 0:
            raise UserError("with several seeds, each holds out its own fold (seed % data.folds); leave data.fold out")
        if self.seeds is None and self.sampling is None and not self.name:
            raise UserError("a single training needs a name, which becomes its folder's")
        # A storage may be shared or damaged: no name may lead out of the study's folder.
        if self.name and (not _PLAIN.fullmatch(self.name) or {"", ".", ".."} & set(self.name.split("/"))):
            raise UserError(f"group {self.name!r}: a name becomes a folder of the study, so it must be a relative path")

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of its trainings: the seeds, or 0 to `trials - 1`."""
        if self.sampling is not None:
            return tuple(range(self.sampling.trials))
        return (self.config.seed,) if self.seeds is None else self.seeds

    def training_name(self, number: int) -> str:
        """The name of a training."""
        if self.sampling is None and self.seeds is None:
            return self.name
        last = f"seed-{number}" if self.sampling is None else f"{number:04}"
        return f"{self.name}/{last}" if self.name else last

    @property
    def training_names(self) -> list[str]:
        """The names of its trainings."""
        return [self.training_name(number) for number in self.numbers]

    @property
    def last_epoch(self) -> int:
        """The epoch at which its trainings pause or end."""
        return min(self.epochs or self.config.epochs, self.config.epochs)


def group_to_json(group: Group, order: int) -> str:
    """The group as its study stores it; `order` is its place among the others."""
    kind = {Halving: "halving", Stages: "stages"}.get(type(group.halving), "")
    sampling = group.sampling
    values = {
        "format": _FORMAT,
        "order": order,
        "config": to_dict(group.config),
        "seeds": group.seeds,
        "sampling": sampling and {**vars(sampling), "space": space_tables(sampling.space)},
        "halving": kind and {"kind": kind, **vars(group.halving)},
        "epochs": group.epochs,
        "after": group.after,
    }
    return json.dumps(values)


def group_from_json(name: str, text: str, where: str) -> tuple[int, Group]:
    """The place of a stored group, and the group."""
    try:
        values = json.loads(text)
        if values["format"] != _FORMAT:
            raise UserError(f"{where}: written by another version of verydeep")
        config = from_dict(TrainConfig, values["config"], where)
        seeds = None if values["seeds"] is None else tuple(map(int, values["seeds"]))
        group = Group(
            name,
            config,
            seeds,
            _read_sampling(values["sampling"], config, where),
            _read_halving(values["halving"], where),
            None if values["epochs"] is None else int(values["epochs"]),
            None if values["after"] is None else str(values["after"]),
        )
        return int(values["order"]), group
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{where}: damaged ({error!r})") from error


def _read_sampling(values: dict[str, Any] | None, config: TrainConfig, where: str) -> Sampling | None:
    if values is None:
        return None
    space = read_space(values["space"], config, f"{where}: space")
    return Sampling(space, int(values["trials"]), int(values["seed"]), values["sampler"])


def _read_halving(values: Any, where: str) -> Halving | Stages | None:  # noqa: ANN401 - what a file has
    if not values:
        return None
    if not isinstance(values, dict):
        raise UserError(f"{where}: damaged ('halving' is not a table)")
    kind = Halving if values["kind"] == "halving" else Stages
    return from_dict(kind, {key: value for key, value in values.items() if key != "kind"}, where)  # type: ignore[return-value]


def changed_settings(before: Group, now: Group) -> list[str]:
    """Settings in which two groups differ such that their trainings cannot continue one another."""
    old, new = (_compared(group) for group in (before, now))
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _compared(group: Group) -> dict[str, Any]:
    """What results depend on: not how many trainings there are, nor on which device.

    Seeds and stages can be trained for more epochs later; a search that stops its trainings asynchronously cannot.
    """
    config = replace(group.config, seed=0 if group.seeds else group.config.seed, device="auto", threads=None)
    values: dict[str, Any] = to_dict(config) | {"after": group.after}
    if group.sampling is not None:
        search = vars(group.sampling) | {"space": space_tables(group.sampling.space)}
        search["halving"] = vars(group.halving) if isinstance(group.halving, Halving) else None
        values["search"] = {name: value for name, value in search.items() if name != "trials"}
    if group.sampling is None or isinstance(group.halving, Stages):
        del values["epochs"]
    return dotted(values)


def default_metric(config: TrainConfig, validated: bool) -> str:
    """What trainings are compared by unless it is given; never a metric of the test set.

    Args:
        config: Their configuration.
        validated: Whether their data has validation samples.
    """
    return f"valid_{config.metric or 'accuracy'}" if validated else "train_loss" if config.evaluate_train else "loss"


def group_of_former_study(search: str, trials: int, where: str) -> tuple[Group, str]:
    """The group and the metric of a search that an earlier version started."""
    values = json.loads(search)
    table = values.pop("search")
    config = from_dict(TrainConfig, with_current_names(values), where)
    space = read_space(table["space"], config, f"{where}: search.space")
    sampling = Sampling(space, trials, table.get("seed", 0), table.get("sampler", "random"))
    halving = None if table.get("halving") is None else from_dict(Halving, table["halving"], where)
    metric = table.get("metric") or default_metric(config, config.data.names_validation)
    return Group("trials", config, sampling=sampling, halving=halving), str(metric)
