"""`verydeep search show` and `verydeep search best`: what came of a search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from verydeep.cli._options import read_options
from verydeep.errors import UserError
from verydeep.files import write_atomic

if TYPE_CHECKING:
    from verydeep.search import Study, TrialRecord

_Study = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="STUDY")]
_ENOUGH = 10  # trials for each field, before shares of importance settle
_Url = Annotated[str | None, tyro.conf.arg(metavar="postgresql://...")]


@dataclass(frozen=True)
class Show:
    """The best trials and what mattered; pictures, CSV and JSON of all trials go to STUDY/show."""

    study: _Study
    """The study's folder."""
    top: Annotated[int, tyro.conf.arg(metavar="N")] = 10
    """How many trials to list."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where pictures and files go; STUDY/show unless given."""
    storage: _Url = None
    """The PostgreSQL server that keeps the study, if its address needs a password."""
    json: bool = False
    """Print everything as JSON; write nothing."""


@dataclass(frozen=True)
class Best:
    """Write the configuration of the best trial, ready for verydeep train."""

    study: _Study
    """The study's folder."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=("-o",), metavar="FILE.toml")] = None
    """The configuration; STUDY/best.toml unless given."""
    storage: _Url = None
    """The PostgreSQL server that keeps the study, if its address needs a password."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    if arguments[0] == "show":
        _show(read_options(Show, "search show", arguments[1:]))
    else:
        _best(read_options(Best, "search best", arguments[1:]))
    return 0


def _show(options: Show) -> None:
    from verydeep.search import open_study, ranked, records, storage_errors, to_csv, to_json

    if options.top < 1:
        raise UserError(f"--top must be at least 1, got {options.top}")
    with storage_errors():
        study = open_study(options.study, options.storage)
        found = records(study)
    if options.json:
        print(to_json(study, found), end="")
        return
    folder = options.out or options.study / "show"
    write_atomic(folder / "trials.csv", to_csv(found))
    write_atomic(folder / "trials.json", to_json(study, found))
    pictures = _draw(study, found, folder)
    _print(study, found, ranked(found, study.config.maximise)[: options.top])
    print(f"{folder}: trials.csv, trials.json{''.join(f', {picture.name}' for picture in pictures)}")


def _print(study: Study, found: list[TrialRecord], best: list[TrialRecord]) -> None:
    from verydeep.cli._console import console
    from verydeep.cli.views._search import progress, trials_table
    from verydeep.search import importance, scored

    console.print(trials_table(best, study.config.metric))
    diverged = sum(record.status == "diverged" for record in found)
    note = f"; {diverged} diverged, which is a result" if diverged else ""
    console.print(progress(found, 1).split(", about")[0] + note, highlight=False)
    if shares := importance(found, study.config.space, study.config.maximise):
        count = len(scored(found, study.config.maximise))
        few = "" if count >= _ENOUGH * len(shares) else f" (little is certain after {count} trials)"
        listed = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        console.print(f"importance{few}: {listed}", highlight=False)
    else:
        console.print("importance: too few trials, or a single field", highlight=False)


def _draw(study: Study, found: list[TrialRecord], folder: Path) -> list[Path]:
    from verydeep.report import plot_parallel, plot_slices
    from verydeep.search import ranked

    if not any(record.value is not None for record in ranked(found, study.config.maximise)):
        return []
    paths = [folder / "slices.png", folder / "parallel.png"]
    for path, plot in zip(paths, (plot_slices, plot_parallel), strict=True):
        plot(found, study.config.space, study.config.metric, path)
    return paths


def _best(options: Best) -> None:
    from verydeep.config import to_dict, to_toml
    from verydeep.search import open_study, ranked, records, storage_errors, with_settings

    with storage_errors():
        study = open_study(options.study, options.storage)
        found = ranked(records(study), study.config.maximise)
    if not found or found[0].value is None:
        raise UserError(f"{options.study}: no trial has a result yet, so there is no best one")
    best, metric = found[0], study.config.metric
    config = with_settings(study.config.train, best.settings)
    path = options.out or options.study / "best.toml"
    head = f"# Trial {best.trial} of study {study.name}: {metric} {best.value:.6g}, the best of {len(found)}.\n"
    write_atomic(path, head + to_toml(to_dict(config)))
    print(f"{path}: trial {best.trial}, {metric} {best.value:.6g}; train it with: verydeep train {path}")
