"""Starting a study in a folder, and opening it again.

study.json     the study's name, and where its trainings are recorded
journal.log    the record of its trainings, unless a server keeps it
workers/       a lock per living worker, and the logs of the processes that were started here
GROUP/...      the runs, which are ordinary runs
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.study import StudyDirection

from verydeep.config import dotted, to_dict
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.redact import redact
from verydeep.studies._artifacts import Artifacts
from verydeep.studies._group import Group, changed_settings, default_metric
from verydeep.studies._space import with_settings
from verydeep.studies._study import Study, upgrade_study
from verydeep.studies.storage._journal import JournalStore
from verydeep.studies.storage._postgres import PostgresStore, storage_errors
from verydeep.studies.storage._store import HEARTBEAT, Store, quiet_optuna
from verydeep.training import TrainConfig, complete_config
from verydeep.words import higher_is_better

if TYPE_CHECKING:
    from optuna.artifacts._protocol import ArtifactStore

_FORMATS = (1, 2)
_MARKS = ("study.json", "seeds.json")  # the latter alone: seeds that an earlier version trained
_OURS = {"journal.log", "journal.lock", "claim.lock", "workers", "trials", "artifacts", "lock", "plan.json", "data"}


def start_study(
    folder: str | Path,
    groups: Sequence[Group],
    *,
    metric: str = "",
    storage: str | None = None,
    artifacts: str | Path | ArtifactStore | None = None,
    heartbeat: int = HEARTBEAT,
    breadth_first: bool = False,
    share_all: bool = False,
    restart_changed: bool = False,
    add_seeds: bool = False,
    new: bool = False,
) -> Study:
    """Create a study, or open an existing one and give it these groups.

    Groups that the study already has get the new number of trainings and epochs; their other settings must be the same,
    unless `restart_changed` is given.

    Args:
        folder: Where the runs go; on a server, the study keeps the name that this folder has now.
        groups: What to train.
        metric: The metric by which trainings are compared; by default, the one that selects their best epoch or,
            without validation data, the training loss.
        storage: A PostgreSQL server's address; by default, a journal file in the folder records the trainings.
        artifacts: A folder that all machines share, or one of Optuna's artifact stores; see `Study.artifacts`.
        heartbeat: Seconds between the heartbeats that workers send to a server.
        breadth_first: Whether the first trainings of all groups come before the second ones.
        share_all: Whether every run goes to the artifact store, and not only the best of each group and teachers.
        restart_changed: Whether groups of other settings, or of another number of epochs, start from the beginning;
            their old runs must be gone.
        add_seeds: Whether groups keep the seeds that they had before; choose among them with `only` of `run_study`.
        new: Refuse to open an existing study.

    Raises:
        UserError: The folder or the storage holds something else, or groups of other settings.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.studies import Group, start_study
        >>> from verydeep.training import ModelConfig, TrainConfig
        >>> configs = {depth: TrainConfig(DataConfig("digits"), ModelConfig(depth=depth)) for depth in (3, 5)}
        >>> start_study("runs/depths", [Group(f"depth-{depth}", config) for depth, config in configs.items()])
        Study('depths', 2 trainings in 2 groups, by loss)
    """
    folder = Path(folder)
    _refuse_other_folders(folder, groups)
    known = _read_study_json(folder)
    if known:
        _check_same_storage(folder, known, storage)
    store = _open_store(folder, storage, heartbeat)
    with storage_errors(), quiet_optuna():
        name = _study_name(folder, known, store)
        groups = _completed(groups, name, folder, store)
        first = groups[0].config
        metric = metric or default_metric(first, first.data.names_validation)
        if new and name in optuna.get_all_study_names(store.storage):
            raise UserError(
                f"the storage already has a study '{name}'; join it with verydeep worker, or choose another folder"
            )
        direction = StudyDirection.MAXIMIZE if higher_is_better(metric) else StudyDirection.MINIMIZE
        created = optuna.create_study(study_name=name, storage=store.storage, direction=direction, load_if_exists=True)
        upgrade_study(created)
        if "metric" not in created.user_attrs:
            if created.get_trials(deepcopy=False):
                raise UserError(f"study '{name}' in the storage was not created by verydeep; choose another folder")
            created.set_user_attr("breadth_first", breadth_first)
            created.set_user_attr("share_all", share_all)
            created.set_user_attr("metric", metric)
        study = Study(name, folder, store, _open_artifacts(artifacts, created))
        with store.claiming():
            _check_same_settings(study, groups, metric, restart_changed)
            before = {group.name: group.seeds or () for group in study.groups if add_seeds}
            for group in groups:
                seeds = group.seeds and tuple(sorted({*before.get(group.name, ()), *group.seeds}))
                study.set_group(replace(group, seeds=seeds) if add_seeds else group)
    _write_study_json(folder, name, storage)
    return study


def open_study(
    folder: str | Path,
    *,
    storage: str | None = None,
    artifacts: str | Path | ArtifactStore | None = None,
    heartbeat: int = HEARTBEAT,
) -> Study:
    """Open a study that was started here or on another machine.

    Args:
        folder: The study's folder; with a server, its name selects the study.
        storage: The PostgreSQL server's address; by default, the one that the study was started with.
        artifacts: The artifact store, if it is not at the place that the study was started with.
        heartbeat: The number of seconds that the study was started with.

    Raises:
        UserError: There is no such study.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.studies import Group, open_study, start_study
        >>> from verydeep.training import TrainConfig
        >>> study = start_study("runs/seeds", [Group("", TrainConfig(DataConfig("digits")), seeds=(0, 1, 2))])
        >>> len(open_study("runs/seeds").records())
        3
    """
    folder = Path(folder)
    known = _read_study_json(folder)
    if storage is None and known is None:
        raise UserError(f"{folder}: no study here; choose the folder of a study, or name the storage that keeps it")
    if known and storage is not None:
        _check_same_storage(folder, known, storage)
    storage = storage or (known or {})["storage"]
    store = _open_store(folder, storage, heartbeat)
    with storage_errors(), quiet_optuna():
        name = _study_name(folder, known, store)
        try:
            loaded = optuna.load_study(study_name=name, storage=store.storage)
        except KeyError as error:
            there = ", ".join(sorted(map(str, optuna.get_all_study_names(store.storage)))[:5]) or "none"
            raise UserError(
                f"the storage has no study '{name}' (it has: {there}); the folder's name must be the study's"
            ) from error
        upgrade_study(loaded)
        if "metric" not in loaded.user_attrs:
            raise UserError(f"study '{name}' in the storage was not created by verydeep; choose another folder")
        study = Study(name, folder, store, _open_artifacts(artifacts, loaded))
    if known is None or "name" not in known:
        _write_study_json(folder, name, storage)
    return study


def _open_store(folder: Path, storage: str | None, heartbeat: int) -> Store:
    return JournalStore(folder) if storage is None else PostgresStore(storage, heartbeat)


def _open_artifacts(place: str | Path | ArtifactStore | None, study: optuna.Study) -> Artifacts | None:
    """The artifact store at a place, or at the one that the study was started with."""
    if isinstance(place, str | Path):
        path = str(Path(place).resolve())
        if study.user_attrs.get("artifacts") is None:
            study.set_user_attr("artifacts", path)
        return Artifacts(path)
    if place is not None:
        return Artifacts(place)
    known = study.user_attrs.get("artifacts")
    return Artifacts(known) if known is not None and Path(known).is_dir() else None


def _study_name(folder: Path, known: dict[str, Any] | None, store: Store) -> str:
    """The study's name in its storage: that of its folder when it was started, even if the folder was moved since."""
    if known and "name" in known:
        return str(known["name"])
    names = optuna.get_all_study_names(store.storage) if known and isinstance(store, JournalStore) else []
    return names[0] if len(names) == 1 else folder.resolve().name  # the journal of an earlier version, or a new study


def _completed(groups: Sequence[Group], name: str, folder: Path, store: Store) -> list[Group]:
    """The groups with every setting that was not given: as before in an existing study, or chosen for the data."""
    before: dict[str, Group] = {}
    if name in optuna.get_all_study_names(store.storage):
        existing = optuna.load_study(study_name=name, storage=store.storage)
        upgrade_study(existing)
        if "metric" in existing.user_attrs:
            before = {group.name: group for group in Study(name, folder, store).groups}
    return [
        replace(group, config=_as_before(group.config, before[group.name].config))
        if group.name in before
        else replace(group, config=complete_config(group.config))
        for group in groups
    ]


def _as_before(config: TrainConfig, before: TrainConfig) -> TrainConfig:
    given, known = dotted(to_dict(config)), dotted(to_dict(before))
    return with_settings(config, {name: known.get(name) for name, value in given.items() if value is None})


def _check_same_settings(study: Study, groups: Sequence[Group], metric: str, restart_changed: bool) -> None:
    known = {group.name: group for group in study.groups}
    changed: list[str] = []
    for group in groups:
        before = known.get(group.name, group)
        names = changed_settings(before, group)
        if not restart_changed:
            changed += names
        elif names or before.config.epochs != group.config.epochs:  # which the schedule depends on
            study.forget({*before.training_names, *group.training_names})
    changed += ["metric"] if metric != study.metric else []
    if changed:
        listed = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "") + " changed"
        raise UserError(f"study '{study.name}' was started with other settings ({listed}); choose another folder")


def _refuse_other_folders(folder: Path, groups: Sequence[Group]) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file, and a study needs a folder")
    if folder.is_dir() and not any((folder / mark).exists() for mark in _MARKS):
        ours = _OURS | {name.partition("/")[0] for group in groups for name in group.training_names}
        paths = (path for path in folder.iterdir() if not path.name.startswith(".") and path.name not in ours)
        others = [path.name for path in paths if path.suffix not in (".lock", ".log") and not _is_group(path)]
        if others:
            raise UserError(f"{folder} exists and is not a study (it contains {others[0]}); choose another folder")


def _is_group(path: Path) -> bool:
    """Whether a folder holds runs, as earlier versions trained them without a study."""
    return any(path.glob("*/config.json"))


def _write_study_json(folder: Path, name: str, storage: str | None) -> None:
    values = {"format": _FORMATS[-1], "name": name, "storage": storage and redact(storage)}
    write_atomic(folder / "study.json", json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def _read_study_json(folder: Path) -> dict[str, Any] | None:
    file = folder / "study.json"
    if not file.exists():
        return None
    values = read_json(file, types={"format": int, "name": str, "storage": str})
    if values.get("format") not in _FORMATS or "storage" not in values:
        raise UserError(f"{file} is not a study of this version; was it written by another version?")
    return values


def _check_same_storage(folder: Path, known: dict[str, Any], storage: str | None) -> None:
    before = known["storage"]
    if (before and redact(before)) != (storage and redact(storage)):
        place = (
            f"on {redact(before)}; name this server (--storage)" if before else "in its journal file; name no server"
        )
        raise UserError(f"{folder} is recorded {place}; or choose another folder")
