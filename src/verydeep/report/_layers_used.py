"""How many layers a run's network uses: one definition for `analyze`, `prune`, `report` and `explore`, computed once.

The order in which layers are closed is selected on training samples, and the curve is measured on the validation data
if the run has some, never on the test data. The result is kept in RUN/analysis with a digest of everything it depends
on, so that the next command that needs it reads it.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from verydeep.analysis import (
    DepthUsage,
    Findings,
    Progress,
    closable_layers,
    depth_usage,
    greedy_lesions,
    load_result,
    removable,
    save_findings,
    some_samples,
)
from verydeep.data import Dataset, Split, spread
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.models import Network, architecture
from verydeep.objectives import Objective
from verydeep.report.figures._findings import plot_findings
from verydeep.training import Run, run_objective, split_of

TOLERANCE = 0.001  # the largest loss of accuracy, unless the user asks for another one
_FILE = "usage.npz"
_MOST_ROWS = 1000  # of samples on disk, by which they are recognised
_VERSION = 1  # increased whenever the same weights, samples and options give another result

Bar = Callable[[str], AbstractContextManager[Progress | None]]


def no_bar(_what: str) -> AbstractContextManager[None]:
    """Show nothing."""
    return nullcontext()


def _ignore(_message: str) -> None:
    pass


@dataclass(frozen=True)
class UsageSamples:
    """The samples that the layers used are counted on.

    Attributes:
        measured: The samples that the curve is measured on.
        name: What results call them.
        train: The samples that the order is selected on; None if that is `measured`.
    """

    measured: Split
    name: str
    train: Split | None


def held_out_split(run: Run) -> str:
    """The split on which layers are counted: the validation data, or the training data if there is none."""
    return "valid" if run.metadata.get("data", {}).get("valid") else "train"


def usage_samples(run: Run, dataset: Dataset, split: str | None = None, samples: int | None = None) -> UsageSamples:
    """The samples of a run's own data.

    Args:
        run: The run.
        dataset: Its data.
        split: What the user asked for; the test set is never used, and the default is held-out data.
        samples: At most this number of random samples of each split; by default, all.
    """
    name = split if split in ("train", "valid") else held_out_split(run)
    measured = _some(split_of(run, dataset, name), samples)
    return UsageSamples(measured, name, None if name == "train" else _some(dataset.train, samples))


def find_usage(
    run: Run,
    samples: UsageSamples,
    tolerance: float | None,
    folder: Path,
    *,
    save: bool = True,
    bar: Bar = no_bar,
    note: Callable[[str], None] = _ignore,
) -> DepthUsage:
    """Count the layers that a run's network uses, or read a result for the same weights, samples and options.

    Args:
        run: The run.
        samples: The samples to use.
        tolerance: The largest loss of accuracy allowed; it may differ from that of the earlier result. None takes that
            of the earlier result, or 0.1 %.
        folder: The folder of the results.
        save: Save the result there.
        bar: A context manager that shows the progress of what it is given the name of.
        note: Called with a message if an earlier result is used, or cannot be read.
    """
    model, objective = run.model, run_objective(run)
    names = closable_layers(model)
    layers = [names.index(name) for name in removable(model)] or None  # a residual network closes what it finds
    group, choosing = _effort(len(layers or ()))
    key = _digest(model, samples, objective, layers or (), group)
    known = _load(folder / _FILE, note)
    if known is not None and known.greedy.key == key:
        note(f"depth usage: reusing {folder / _FILE}, made from the same weights and samples")
        greedy = known.greedy
    else:
        known = None
        with bar("depth usage") as progress:
            greedy = greedy_lesions(
                model,
                samples.measured,
                samples.name,
                train=samples.train,
                layers=layers,
                choosing=choosing,
                group=group,
                progress=progress,
                objective=objective,
            )
        greedy = replace(greedy, key=key)
    if tolerance is None:
        tolerance = TOLERANCE if known is None else known.tolerance
    usage = depth_usage(greedy, tolerance)
    if save and (known is None or known.tolerance != tolerance):
        _save(usage, folder)
    return usage


def _effort(layers: int) -> tuple[int, int]:
    """How many layers are closed after each comparison, and on how many samples they are compared.

    Closing single layers takes too long in networks of more than 100 layers. Above 250 layers even 50 comparisons of
    5,000 samples do: there, fewer comparisons of fewer samples take about as long whatever the depth.
    """
    deepest_in_full = 250
    if layers <= deepest_in_full:
        return max(1, layers // 50), 5000
    return layers**2 // (50 * deepest_in_full), max(200, 5000 * deepest_in_full**2 // layers**2)


def _some(split: Split, samples: int | None) -> Split:
    return split if samples is None else cast("Split", some_samples(split, samples))


def _load(path: Path, note: Callable[[str], None]) -> DepthUsage | None:
    """An earlier result, if there is one that can be read."""
    try:
        return load_result(path, DepthUsage) if path.exists() else None
    except UserError as error:  # damaged, or of another version
        note(f"depth usage: computing it again, because {error}")
        return None


def _save(usage: DepthUsage, folder: Path) -> None:
    """Draw and save a result, and put it into the summary of an earlier analysis, which would contradict it.

    The result comes last, because whoever finds it again takes everything else as written.
    """
    found = Findings(usage=usage)
    plot_findings(found, folder)
    summary = folder / "summary.json"
    if summary.exists():
        content = read_json(summary) | {"usage": summarise_usage(usage)}
        if isinstance(content.get("observations"), dict):
            counted = found.observations
            content["observations"] |= {"layers_used": counted.layers_used, "idle_together": counted.idle_together}
        write_atomic(summary, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    save_findings(found, folder)


def summarise_usage(usage: DepthUsage) -> dict[str, Any]:
    """The layers used as plain values for JSON."""
    found: dict[str, Any] = {
        "measure": usage.greedy.measure,
        "split": usage.split,
        "samples": usage.greedy.samples,
        "tolerance": usage.tolerance,
        "allowed": usage.within,
        "layers_used": len(usage.kept),
        "interval": usage.interval,
        "kept": list(usage.kept),
        "idle": list(usage.idle),
    }
    if usage.training is not None:
        beside = usage.training
        found["training"] = {
            "samples": beside.greedy.samples,
            "layers_used": len(beside.kept),
            "interval": beside.interval,
        }
    return found


def _digest(
    model: Network, samples: UsageSamples, objective: Objective | None, layers: Sequence[int], group: int
) -> str:
    """A digest of everything that the curve depends on: weights, samples and options."""
    digest = hashlib.blake2b(digest_size=16)
    task = None if objective is None else (type(objective).__name__, sorted(vars(objective).items()))
    options = (_VERSION, architecture(model), samples.name, task, list(layers), group)
    digest.update(repr(options).encode())
    for name, values in sorted(model.state_dict().items()):
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        digest.update(_bytes(values))
    for split in (samples.measured, samples.train):
        for values in () if split is None else (_some_rows(split), split.y):
            digest.update(f"{values.dtype} {tuple(values.shape)}".encode())
            digest.update(_bytes(values))
    return digest.hexdigest()


def _some_rows(split: Split) -> Tensor:
    """The samples; of those that stay on disk, some, because reading all may take longer than the analysis."""
    if split.prepare is None or len(split) <= _MOST_ROWS:
        return split.x
    return split.x.index_select(0, spread(len(split), _MOST_ROWS))


def _bytes(values: Tensor) -> memoryview:
    return values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
