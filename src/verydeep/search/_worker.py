"""A worker: takes one trial after another until the study is complete."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from verydeep.errors import UserError
from verydeep.search._attempts import MOST_DEATHS
from verydeep.search._budget import Budget
from verydeep.search._postgres import storage_errors
from verydeep.search._records import epochs_trained
from verydeep.search._storage import worker_name
from verydeep.search._study import Claim, LostTrial, Study
from verydeep.search._trial import Data, ImpossibleError, Paused, Watch, check_trial, possible, train_trial
from verydeep.training import Interrupt, Interrupted, Run, interruptible

Say = Callable[[str], None]
_LOOK_AGAIN = 1.0  # seconds until an idle worker looks whether another one has died


def work(
    study: Study,
    folder: Path,
    root: str | Path | None = None,
    budget: Budget | None = None,
    report: Say = lambda _: None,
) -> bool:
    """Train trials, with one thread; return whether the study is complete, and not the budget used or someone tired.

    Args:
        study: Whose trials.
        folder: The study's folder; runs go to its `trials`.
        root: Where known datasets are kept.
        budget: When to stop, unless all is done before.
        report: Is told of every trial's end.
    """
    worker, data, budget = worker_name(), Data(root), budget or Budget()
    with storage_errors(), interruptible() as interrupt, study.store.working(worker), _ending(budget.seconds):
        while not interrupt.requested and not _is_used(study, budget):
            claim = study.store.patiently(lambda: study.claim(worker))
            if claim is None:
                if not study.store.patiently(study.unfinished):
                    return True
                time.sleep(_LOOK_AGAIN)
                continue
            _train(study, claim, folder / "trials" / f"{claim.setting:04}", data, budget, interrupt, report)
    return False


def _train(
    study: Study, claim: Claim, path: Path, data: Data, budget: Budget, interrupt: Interrupt, report: Say
) -> None:
    """One trial, to its result or back among those that wait."""

    def watch(metrics: dict[str, Any]) -> None:
        value = metrics.get(study.config.metric)
        ends = study.store.patiently(lambda: study.report(claim, metrics["epoch"], value))
        if ends or _is_used(study, budget):
            raise Paused("pruned" if ends else "")

    def wanted() -> None:
        if interrupt.requested:
            raise Paused

    try:
        with study.store.beating(claim.trial_id):
            result = _result(study, claim, path, data, watch, wanted)
        study.store.patiently(lambda: study.finish(claim, result))
        report(f"trial {claim.setting}: {result['status']} after {result['epochs']} epochs")
    except (Interrupted, Paused):
        study.leave(claim)
    except LostTrial:
        report(f"trial {claim.setting}: given to another worker")
    except BaseException as error:
        # What nobody expected, such as too little memory, may be the settings' fault: it counts as a worker's death.
        study.leave(claim, died=isinstance(error, Exception) and not isinstance(error, UserError))
        raise


def _result(
    study: Study,
    claim: Claim,
    path: Path,
    data: Data,
    watch: Watch,
    wanted: Callable[[], None],
) -> dict[str, Any]:
    """How the run ended: also one that diverged, was pruned or cannot be trained at all has a result.

    Other errors have not: a run that is held, a missing GPU or damaged data say nothing about the settings.
    """
    if claim.deaths >= MOST_DEATHS:
        return _failed(f"{claim.deaths} workers died over it; out of memory?")
    try:
        config, dataset = possible(study.config, claim.settings, data)
        if not (path / "config.json").exists():
            check_trial(config, dataset)
    except ImpossibleError as error:
        return _failed(str(error))
    try:
        run = train_trial(replace(config, threads=config.threads or 1), path, data, watch, wanted)
    except Paused as paused:
        if str(paused) != "pruned":
            raise
        return _described(Run.load(path), "pruned")
    assert run.summary is not None
    return _described(run, run.summary["status"])


def _described(run: Run, status: str) -> dict[str, Any]:
    curve = run.metrics
    seconds = curve[-1]["seconds"] if curve else 0.0
    return {"status": status, "epochs": len(curve), "seconds": seconds, "run": str(run.path), "curve": curve}


def _failed(reason: str) -> dict[str, Any]:
    return {"status": "failed", "reason": reason, "epochs": 0, "seconds": 0.0, "run": "", "curve": []}


def _is_used(study: Study, budget: Budget) -> bool:
    if budget.epochs is None:
        return False
    return study.store.patiently(lambda: epochs_trained(study)) >= budget.epochs


@contextmanager
def _ending(seconds: float | None) -> Iterator[None]:
    """Stop as if by Ctrl-C when the time is over."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, signal.raise_signal, (signal.SIGINT,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
