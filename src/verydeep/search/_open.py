"""Starting a study and finding it again.

study.json     the search, and where its trials are kept
journal.log    the trials, unless a server keeps them
trials/NNNN/   the run of each, a run like any other
workers/       a lock for every worker that lives, and what the processes we started said
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
from verydeep.search._postgres import PostgresStore, storage_errors
from verydeep.search._storage import JournalStore, Store, quiet_optuna
from verydeep.search._study import Study

FORMAT = 1
HEARTBEAT = 15  # seconds


def start_study(folder: Path, config: SearchConfig, storage: str | None = None, heartbeat: int = HEARTBEAT) -> Study:
    """Create a study, or open it if it is the same search; more trials than before are added to it.

    Args:
        folder: Where the runs go; its name now is the study's name in a server from then on.
        config: The search.
        storage: A PostgreSQL server's address; a journal file in the folder unless given.
        heartbeat: Seconds between the signs of life that workers give a server.
    """
    _refuse_others(folder)
    known = _remembered(folder)
    if known:
        _check_place(folder, known, storage)
        _check_same(folder, search_config(known["config"], str(folder / "study.json")), config)
    store = _store(folder, storage, heartbeat)
    with storage_errors(), quiet_optuna():
        name = _name(folder, known, store)
        direction = StudyDirection.MAXIMIZE if config.maximise else StudyDirection.MINIMIZE
        created = optuna.create_study(study_name=name, storage=store.storage, direction=direction, load_if_exists=True)
        if "search" not in created.user_attrs:
            if created.get_trials(deepcopy=False):
                raise UserError(f"the storage's study '{name}' is not verydeep's; choose another --study")
            created.set_user_attr("search", json.dumps(config.as_dict()))
        _check_same(folder, _kept(created), config)
        if created.user_attrs.get("trials", 0) < config.options.trials:
            created.set_user_attr("trials", config.options.trials)
    _remember(folder, name, storage, config)
    return Study(name, config, store)


def open_study(folder: Path, storage: str | None = None, heartbeat: int = HEARTBEAT) -> Study:
    """A study that has been started, here or on another machine; the arguments are those of `start_study`."""
    known = _remembered(folder)
    if storage is None and known is None:
        raise UserError(f"{folder}: no study here; start one with verydeep search, or say where it is with --storage")
    if known and storage is not None:
        _check_place(folder, known, storage)
    storage = storage or (known or {})["storage"]
    store = _store(folder, storage, heartbeat)
    with storage_errors(), quiet_optuna():
        name = _name(folder, known, store)
        try:
            found = optuna.load_study(study_name=name, storage=store.storage)
        except KeyError as error:
            there = ", ".join(sorted(optuna.get_all_study_names(store.storage))[:5]) or "none"
            raise UserError(f"the storage has no study '{name}', but {there}; --study ends with its name") from error
        if "search" not in found.user_attrs:
            raise UserError(f"the storage's study '{name}' is not verydeep's; choose another --study")
        config = _kept(found)
    if known is None or "name" not in known:
        _remember(folder, name, storage, config)
    return Study(name, replace(config, options=replace(config.options, trials=found.user_attrs["trials"])), store)


def _store(folder: Path, storage: str | None, heartbeat: int) -> Store:
    return JournalStore(folder) if storage is None else PostgresStore(storage, heartbeat)


def _name(folder: Path, known: dict[str, Any] | None, store: Store) -> str:
    """The study's name in its storage: the folder's when it was started, also if that was moved since."""
    if known and "name" in known:
        return str(known["name"])
    names = optuna.get_all_study_names(store.storage) if known and isinstance(store, JournalStore) else []
    return names[0] if len(names) == 1 else folder.resolve().name  # a journal of an earlier version, or a new study


def _kept(study: optuna.Study) -> SearchConfig:
    return search_config(json.loads(study.user_attrs["search"]), f"study '{study.study_name}'")


def _check_same(folder: Path, before: SearchConfig, now: SearchConfig) -> None:
    if changed := differences(before, now):
        names = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "") + " changed"
        raise UserError(f"study '{folder.name}' was started as another search ({names}); choose another --study")


def _refuse_others(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; --study is a folder")
    if folder.is_dir() and not (folder / "study.json").exists():
        foreign = [path.name for path in folder.iterdir() if path.name not in _OURS and not path.name.startswith(".")]
        if foreign:
            raise UserError(f"{folder} is there and is no study (it has {foreign[0]}); choose another --study")


_OURS = {"journal.log", "journal.lock", "claim.lock", "workers", "trials"}


def _remember(folder: Path, name: str, storage: str | None, config: SearchConfig) -> None:
    values = {"format": FORMAT, "name": name, "storage": storage and redact(storage), "config": config.as_dict()}
    write_atomic(folder / "study.json", json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def _remembered(folder: Path) -> dict[str, Any] | None:
    file = folder / "study.json"
    if not file.exists():
        return None
    values = read_json(file)
    if values.get("format") != FORMAT or not {"storage", "config"} <= values.keys():
        raise UserError(f"{file} is no study's of format {FORMAT}; another version's?")
    return values


def _check_place(folder: Path, known: dict[str, Any], storage: str | None) -> None:
    before = known["storage"]
    if (before and redact(before)) != (storage and redact(storage)):
        place = redact(before) if before else "its journal file (no --storage)"
        raise UserError(f"{folder} is kept in {place}; go on there, or choose another --study")
