"""Starting a training again that may have been started before: which run is continued, and which is refused."""

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from verydeep.config import dotted, to_dict
from verydeep.data import KNOWN_NAMES
from verydeep.errors import UserError
from verydeep.training._config import TrainConfig
from verydeep.training.run._run import Run, require_free_folder

_SHOWN = 5  # differing settings in an error message
_TRAINED = ("finished", "stopped early", "diverged")


def run_to_continue(config: TrainConfig, path: Path, user_supplied: Collection[str] = ()) -> Run | None:
    """The run in a folder, if this is the training that started it; None if it has not been started yet.

    Args:
        config: What to train.
        path: The folder. A start that was killed before the run had its configuration left no run in it.
        user_supplied: Which of "model" and "dataset" are given in Python.

    Raises:
        UserError: The folder holds something else, such as a run with other settings.
    """
    if not (path / "config.json").exists():
        require_free_folder(path)
        return None
    run = Run.load(path)
    if run.summary is not None and run.summary.status not in _TRAINED:
        raise UserError(f"{path} was {run.summary.status} from another run, not trained; choose another folder")
    different = differing_settings(run.config, config, run.metadata.get("chosen") or ())
    before, now = set(run.user_supplied), set(user_supplied)
    different |= {name: (_origin(name in before), _origin(name in now)) for name in sorted(before ^ now)}
    if different:
        raise UserError(_other_settings(path, different))
    return run


def differing_settings(
    one: TrainConfig, other: TrainConfig, chosen: Collection[str] = ()
) -> dict[str, tuple[Any, Any]]:
    """The settings in which two configurations of the same training differ, by their dotted names.

    Where it is trained (`device`, `threads`) and how paths are written do not matter.

    Args:
        one: The configuration of a training that was started.
        other: The configuration that is given now.
        chosen: The settings that were chosen for the data when it was started; they need not be given now.
    """
    left, right = (dotted(to_dict(_comparable(config))) for config in (one, other))
    names = [name for name in dict.fromkeys((*left, *right)) if left.get(name) != right.get(name)]
    different = {name: (left.get(name), right.get(name)) for name in names}
    return {name: both for name, both in different.items() if name not in chosen or both[1] is not None}


def chosen_settings(given: TrainConfig, completed: TrainConfig) -> list[str]:
    """The settings that were chosen for the data, by their dotted names."""
    before, after = dotted(to_dict(given)), dotted(to_dict(completed))
    return sorted(name for name, value in after.items() if before.get(name) is None and value is not None)


def _comparable(config: TrainConfig) -> TrainConfig:
    data = config.data
    source = data.source if data.source in KNOWN_NAMES else _resolve(data.source)
    assert source is not None
    return replace(
        config,
        data=replace(data, source=source, test_path=_resolve(data.test_path), valid_path=_resolve(data.valid_path)),
        distill=replace(config.distill, teacher=_resolve(config.distill.teacher)),
        init=_resolve(config.init),
        device="auto",
        threads=None,
    )


def _resolve(path: str | None) -> str | None:
    return path and os.path.realpath(path)


def _origin(given: bool) -> str:
    return "given in Python" if given else "from the configuration"


def _other_settings(path: Path, different: Mapping[str, tuple[Any, Any]]) -> str:
    parts = [f"{name} {before} (now {now})" for name, (before, now) in different.items()]
    more = f" and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    before, now = different.get("epochs", (0, 0))
    longer = len(different) == 1 and now > before
    way_out = f"to train it for longer, resume it with epochs = {now}" if longer else "choose another folder"
    return f"{path} was started with other settings: {', '.join(parts[:_SHOWN])}{more}; {way_out}"
