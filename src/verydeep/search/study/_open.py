"""Starting a study in a folder, and opening it again.

study.json     the search, and where its trials are kept
journal.log    the trials, unless a server keeps them
trials/NNNN/   the run of each trial, an ordinary run
workers/       a lock per living worker, and the logs of the processes that a search started
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from optuna.study import StudyDirection

from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.redact import redact
from verydeep.search._config import SearchConfig, differences, search_config
from verydeep.search.storage._journal import JournalStore
from verydeep.search.storage._postgres import PostgresStore, storage_errors
from verydeep.search.storage._store import Store, quiet_optuna
from verydeep.search.study._study import Study

_FORMAT = 1
HEARTBEAT = 15  # seconds
_OURS = {"journal.log", "journal.lock", "claim.lock", "workers", "trials"}


def start_study(
    folder: str | Path, config: SearchConfig, storage: str | None = None, heartbeat: int = HEARTBEAT
) -> Study:
    """Create a study, or open an existing one of the same search and add trials to it.

    Args:
        folder: Where the runs go; on a server, the study keeps the name that this folder has now.
        config: The search.
        storage: A PostgreSQL server's address; by default, a journal file in the folder keeps the trials.
        heartbeat: Seconds between the heartbeats that workers send to a server.

    Raises:
        UserError: The folder or the storage holds something else, or the study of another search.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, SearchConfig, start_study
        >>> from verydeep.training import TrainConfig
        >>> base, space = TrainConfig(DataConfig("digits")), {"model.depth": Choices((3, 5))}
        >>> config = SearchConfig(base, space, Options(trials=2))
        >>> start_study("runs/depths", config)
        Study('depths', 2 trials of model.depth, by loss)
    """
    folder = Path(folder)
    _refuse_other_folders(folder)
    known = _read_study_json(folder)
    if known:
        _check_same_storage(folder, known, storage)
        _check_same_search(folder, search_config(known["config"], str(folder / "study.json")), config)
    store = _open_store(folder, storage, heartbeat)
    with storage_errors(), quiet_optuna():
        name = _study_name(folder, known, store)
        direction = StudyDirection.MAXIMIZE if config.maximise else StudyDirection.MINIMIZE
        created = optuna.create_study(study_name=name, storage=store.storage, direction=direction, load_if_exists=True)
        if "search" not in created.user_attrs:
            if created.get_trials(deepcopy=False):
                raise UserError(f"study '{name}' in the storage was not created by verydeep; choose another folder")
            created.set_user_attr("search", json.dumps(config.as_dict()))
        _check_same_search(folder, _stored_config(created), config)
        if created.user_attrs.get("trials", 0) < config.options.trials:
            created.set_user_attr("trials", config.options.trials)
    _write_study_json(folder, name, storage, config)
    return Study(name, config, store)


def open_study(folder: str | Path, storage: str | None = None, heartbeat: int = HEARTBEAT) -> Study:
    """Open a study that was started here or on another machine.

    Args:
        folder: The study's folder; with a server, its name selects the study.
        storage: The PostgreSQL server's address; by default, the one that the study was started with.
        heartbeat: The number of seconds that the study was started with.

    Raises:
        UserError: There is no such study.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.search import Choices, Options, SearchConfig, open_study, start_study
        >>> from verydeep.training import TrainConfig
        >>> base, space = TrainConfig(DataConfig("digits")), {"model.depth": Choices((3, 5))}
        >>> config = SearchConfig(base, space, Options(trials=2))
        >>> study = start_study("runs/depths", config)
        >>> open_study("runs/depths").trials
        2
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
            there = ", ".join(sorted(optuna.get_all_study_names(store.storage))[:5]) or "none"
            raise UserError(
                f"the storage has no study '{name}' (it has: {there}); the folder's name must be the study's"
            ) from error
        if "search" not in loaded.user_attrs:
            raise UserError(f"study '{name}' in the storage was not created by verydeep; choose another folder")
        config = _stored_config(loaded)
    if known is None or "name" not in known:
        _write_study_json(folder, name, storage, config)
    return Study(name, replace(config, options=replace(config.options, trials=loaded.user_attrs["trials"])), store)


def _open_store(folder: Path, storage: str | None, heartbeat: int) -> Store:
    return JournalStore(folder) if storage is None else PostgresStore(storage, heartbeat)


def _study_name(folder: Path, known: dict[str, Any] | None, store: Store) -> str:
    """The study's name in its storage: that of its folder when it was started, even if the folder was moved since."""
    if known and "name" in known:
        return str(known["name"])
    names = optuna.get_all_study_names(store.storage) if known and isinstance(store, JournalStore) else []
    return names[0] if len(names) == 1 else folder.resolve().name  # the journal of an earlier version, or a new study


def _stored_config(study: optuna.Study) -> SearchConfig:
    return search_config(json.loads(study.user_attrs["search"]), f"study '{study.study_name}'")


def _check_same_search(folder: Path, before: SearchConfig, now: SearchConfig) -> None:
    if changed := differences(before, now):
        names = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "") + " changed"
        raise UserError(f"study '{folder.name}' belongs to another search ({names}); choose another folder")


def _refuse_other_folders(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file, and a study needs a folder")
    if folder.is_dir() and not (folder / "study.json").exists():
        others = [path.name for path in folder.iterdir() if path.name not in _OURS and not path.name.startswith(".")]
        if others:
            raise UserError(f"{folder} exists and is not a study (it contains {others[0]}); choose another folder")


def _write_study_json(folder: Path, name: str, storage: str | None, config: SearchConfig) -> None:
    values = {"format": _FORMAT, "name": name, "storage": storage and redact(storage), "config": config.as_dict()}
    write_atomic(folder / "study.json", json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def _read_study_json(folder: Path) -> dict[str, Any] | None:
    file = folder / "study.json"
    if not file.exists():
        return None
    values = read_json(file)
    if values.get("format") != _FORMAT or not {"storage", "config"} <= values.keys():
        raise UserError(f"{file} is not a format-{_FORMAT} study; was it written by another version?")
    return values


def _check_same_storage(folder: Path, known: dict[str, Any], storage: str | None) -> None:
    before = known["storage"]
    if (before and redact(before)) != (storage and redact(storage)):
        place = redact(before) if before else "its journal file"
        raise UserError(f"{folder} is kept in {place}; continue there, or choose another folder")
