"""`how_deep`: from data to the answer, the page and a network that predicts."""

from __future__ import annotations

import filecmp
import math
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from verydeep.config import from_dict
from verydeep.cpu import cpu_settings
from verydeep.data import DataConfig, InMemory, in_memory, save_in_memory
from verydeep.depth._answer import DepthAnswer
from verydeep.depth._carry_out import start_depth_study, train_and_measure
from verydeep.depth._problem import Problem
from verydeep.depth._progress import DepthProgress, choose_depth_progress
from verydeep.depth._stopwatch import Stopwatch
from verydeep.depth._stored_plan import Asked, check_plan, stored_plan
from verydeep.errors import UserError
from verydeep.studies import free_cores
from verydeep.training import TrainConfig

_MOST = {"mlp": 50, "conv": 6}  # layers, or layers per stage


def how_deep(
    data: str | os.PathLike[str] | DataConfig | Any,  # noqa: ANN401 - also DataFrames and pairs of arrays
    target: str | Sequence[str] | None = None,
    *,
    folder: str | Path | None = None,
    most: int | None = None,
    minutes: float | None = None,
    total_epochs: int | None = None,
    extend: bool | None = None,
    network: Literal["mlp", "conv"] | None = None,
    width: int | None = None,
    seed: int = 0,
    settings: TrainConfig | None = None,
    storage: str | None = None,
    artifacts: str | Path | None = None,
    jobs: int | None = None,
    root: str | Path | None = None,
    progress: DepthProgress | bool | None = True,
    **options: Any,  # noqa: ANN401 - the fields of DataConfig
) -> DepthAnswer:
    """Find out how deep a network must be for some data.

    Settings are searched for highway and plain networks of every depth from 0, the linear model, to `most`; the best
    ones are trained with several seeds, each of which holds out another part of the training data. The answer is the
    smallest depth whose mean loss on held-out data is within one standard error of the best depth's. The layers of the
    deep network are closed one after the other to see how many it uses. The test data is used once, at the end.

    A call that was killed at any time continues if it is repeated with the same folder; if it has been answered there,
    the answer is returned at once.

    Args:
        data: A known name, the path of a table or of a folder of images, a DataFrame, a pair `(x, y)` of arrays, or a
            `DataConfig`.
        target: The column of a table that is to be predicted; several columns are several numbers or labels.
        folder: Where everything goes; by default, `runs/depth-DATA`.
        most: The depth of the deepest networks; by default, 50 layers, or 6 layers per stage of convolutional networks.
        minutes: How long it may take; 10 by default. What is trained depends on the speed of the machine.
        total_epochs: The epochs of all trainings together, instead of `minutes`; the result has the same bits every
            time.
        extend: If `minutes` is too little for three seeds at three depths, take as long as they need instead of
            refusing; by default, only if `minutes` is not given.
        network: `mlp` or `conv`; by default, `conv` for your own images and `mlp` for everything else.
        width: The units per hidden layer, or the channels of a convolutional network; by default, each search chooses
            among 24, 48 and 96 units. A wider network may need fewer layers.
        seed: Decides the parts that are held out, the settings that are drawn and the initial weights.
        settings: Settings of all trainings that are not searched, such as `TrainConfig(loss="huber")`.
        storage: A PostgreSQL server's address, so that `verydeep worker` on other machines can join.
        artifacts: A folder that all machines share.
        jobs: The number of workers on this machine; by default, one per core.
        root: Folder of the known datasets.
        progress: True shows a progress bar in a terminal, and nothing elsewhere; False and None show nothing.
        **options: The other fields of `DataConfig`, such as `ignore=["id"]`.

    Returns:
        The answer; the folder holds it as `depth.json` and `depth.html`, and the recommended network as the run
        `network`.

    Raises:
        UserError: The data cannot be learned from, or the budget is too small for three seeds at three depths.
        DepthInterrupted: Someone pressed Ctrl-C; everything is saved.

    Example:
        >>> from verydeep.depth import how_deep
        >>> answer = how_deep("digits", folder="runs/depth-digits", most=4, total_epochs=400)
        >>> answer.depth in (0, 1, 2, 3, 4)
        True
    """
    began = time.monotonic()
    shown = choose_depth_progress(progress)
    if minutes is not None and total_epochs is not None:
        raise UserError("give minutes or total_epochs, not both")
    limit = 10.0 if minutes is None and total_epochs is None else minutes
    extends = extend if extend is not None else minutes is None
    _check_numbers(most, limit, total_epochs, seed, width)
    if settings is not None and not isinstance(settings, TrainConfig):
        raise UserError(f"settings must be a TrainConfig, such as TrainConfig(loss='huber'); got {settings!r:.60}")
    config, place = _data_config(data, target, folder, seed, options)
    try:
        with cpu_settings(1):  # the workers take the other cores
            shown.phase("reading the data")
            problem = Problem(config, root, network, settings, width)
            deepest, workers = most or _MOST[problem.network], jobs or free_cores("cpu", 1)
            asked = Asked(deepest, limit, total_epochs, seed, workers, extends)
            if (place / "depth.json").exists():
                check_plan(place, problem, asked)
                answer = DepthAnswer.load(place)
                if not (place / "depth.html").exists():
                    answer.write_page(place / "depth.html")
                return answer
            planned = stored_plan(place, problem, asked, shown)
            study = start_depth_study(place, problem, planned.plan, storage, artifacts)
            return train_and_measure(study, problem, planned, jobs, shown, Stopwatch(place, began))
    finally:
        shown.finish()


def _check_numbers(
    most: int | None, minutes: float | None, total_epochs: int | None, seed: int, width: int | None
) -> None:
    for name, value, kind, words in (
        ("most", most, Integral, "a whole number"),
        ("minutes", minutes, Real, "a number"),
        ("total_epochs", total_epochs, Integral, "a whole number"),
        ("seed", seed, Integral, "a whole number"),
        ("width", width, Integral, "a whole number"),
    ):
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            raise UserError(f"{name} must be {words}, got {value!r:.60}")
    if most is not None and not 2 <= most <= 1000:
        raise UserError(f"most must be from 2 to 1000 layers, got {most}")
    if width is not None and not 1 <= width <= 4096:
        raise UserError(f"width must be from 1 to 4096, got {width}")
    if minutes is not None and not 0 < minutes < math.inf:
        raise UserError(f"minutes must be more than 0, got {minutes}")
    if total_epochs is not None and total_epochs < 1:
        raise UserError(f"total_epochs must be at least 1, got {total_epochs}")
    if not 0 <= seed < 2**31:
        raise UserError(f"seed must be at least 0 and less than 2 ** 31, got {seed}")


def _data_config(
    data: Any,  # noqa: ANN401
    target: str | Sequence[str] | None,
    folder: str | Path | None,
    seed: int,
    options: dict[str, Any],
) -> tuple[DataConfig, Path]:
    """The data as a configuration, and the folder; data in memory becomes a file there, which workers can read."""
    if isinstance(data, DataConfig):
        if target is not None or options:
            raise UserError("how_deep: give options in the DataConfig or as arguments, not both")
        config = data
        place = _folder(folder, config.source)
    else:
        memory = in_memory(data)
        if memory is None and not isinstance(data, str | os.PathLike):
            raise UserError(f"how_deep takes a name, a path, a DataFrame or a pair (x, y) of arrays; got {data!r:.60}")
        place = _folder(folder, "data" if memory is not None else os.fspath(data))
        source = os.fspath(data) if memory is None else str(_save_once(memory, place))
        given = dict(options) if target is None else {"target": target, **options}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
        config = from_dict(DataConfig, {"source": source, **plain}, "how_deep")
    if config.validation == 0:
        raise UserError("data.validation = 0: validation data stops trainings and chooses settings; leave it out")
    if config.folds is not None:
        raise UserError("how_deep divides the data into parts itself; leave folds out")
    return (replace(config, seed=seed) if config.seed == 0 else config), place


def _save_once(memory: InMemory, place: Path) -> Path:
    """Write data in memory into the folder, unless another study began there with other data."""
    if not (place / "study.json").exists():
        return save_in_memory(memory, place / "data")
    with TemporaryDirectory() as temporary:
        fresh = save_in_memory(memory, Path(temporary))
        stored = place / "data" / fresh.name
        if not stored.exists() or not filecmp.cmp(fresh, stored, shallow=False):
            raise UserError(f"{place} was started with other data; choose another folder, with folder=...")
    return stored


def _folder(folder: str | Path | None, source: str) -> Path:
    return Path(folder) if folder is not None else Path("runs") / f"depth-{Path(source).stem or 'data'}"
