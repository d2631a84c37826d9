"""Carrying out a plan: train what follows from the results so far, then measure everything and answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from verydeep.analysis import DepthUsage
from verydeep.config import dotted, to_dict
from verydeep.data import DataConfig, Dataset
from verydeep.depth._answer import DepthAnswer, DepthNetwork, LayersUsed, OtherModel, TrainingCurve
from verydeep.depth._held_out import HeldOut
from verydeep.depth._layers_used import layers_used
from verydeep.depth._network import recommend
from verydeep.depth._notes import make_notes
from verydeep.depth._others import other_models
from verydeep.depth._phases import Finalist, Phases, first_groups, seeds_of
from verydeep.depth._plan import DepthPlan
from verydeep.depth._points import make_points
from verydeep.depth._problem import Candidate, Problem
from verydeep.depth._progress import DepthProgress
from verydeep.depth._rule import Choice
from verydeep.depth._stopwatch import Stopwatch
from verydeep.depth._stored_plan import Planned
from verydeep.studies import Study, TrainingRecord, open_study, run_study, start_study
from verydeep.training import EpochMetrics, Interrupted, Run, interruptible

_OTHERS = 0.04  # the share of the time for each of the other models
_MINUTES_FOR_OTHERS = 10.0  # the time that they are a share of if epochs were asked for


class DepthInterrupted(Exception):  # noqa: N818 - not an error
    """Someone asked to stop, with Ctrl-C or SIGTERM; the same call continues.

    Attributes:
        folder: Where everything is saved.

    Example:
        >>> from verydeep.depth import DepthInterrupted, how_deep
        >>> def answer_or_save(path: str) -> None:
        ...     try:
        ...         print(how_deep(path).sentence)
        ...     except DepthInterrupted as stopped:
        ...         print(f"saved in {stopped.folder}")
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(f"interrupted; {folder} is saved and can be continued")
        self.folder = folder


def start_depth_study(
    folder: Path, problem: Problem, plan: DepthPlan, storage: str | None, artifacts: str | Path | None
) -> Study:
    """Start the study of a plan, or open it again.

    Args:
        folder: The folder.
        problem: The data and the family of networks.
        plan: What is trained.
        storage: A PostgreSQL server's address; by default, a journal file in the folder.
        artifacts: A folder that all machines share.
    """
    if (folder / "study.json").exists():
        return open_study(folder, storage=storage, artifacts=artifacts)
    return start_study(
        folder, first_groups(problem, plan), metric="valid_loss", storage=storage, artifacts=artifacts, share_all=True
    )


def train_and_measure(
    study: Study, problem: Problem, planned: Planned, jobs: int | None, progress: DepthProgress, stopwatch: Stopwatch
) -> DepthAnswer:
    """Train everything that follows from the plan, then measure it and write the answer.

    Args:
        study: The study of the plan.
        problem: The data and the family of networks.
        planned: The plan and its budget.
        jobs: The number of workers on this machine.
        progress: What is shown.
        stopwatch: The time that all this takes.

    Raises:
        DepthInterrupted: Someone asked to stop; everything is saved.
    """
    held_out = HeldOut(study, problem, seeds_of(planned.plan))

    def enough(finalists: Sequence[Finalist]) -> int | None:
        """The depth that is enough according to what has been trained so far; None if nothing was learned."""
        progress.phase("comparing depths on held-out samples")
        held_out.seeds = seeds_of(phases.plan)
        held_out.update(finalists)
        best = held_out.best_settings(finalists)
        choice = held_out.choose(best)
        return best[choice.chosen].candidate.depth if held_out.has_learned(best[choice.best]) else None

    phases = Phases(study, problem, planned, lambda: stopwatch.seconds, enough)

    waiting = set[str]()  # trainings without a result, by which it is noticed that a group is complete

    def advance() -> None:
        study.set_open(phases.advance())
        progress.phase(phases.now)
        stopwatch.save()
        waiting.update(record.name for record in study.records() if not record.has_ended)

    def on_end(record: TrainingRecord) -> None:
        waiting.discard(record.name)
        if not any(name.rpartition("/")[0] == record.group or name == record.group for name in waiting):
            advance()

    with interruptible() as interrupt:
        progress.plan(planned.plan, phases.share_trained)
        study.set_open(True)
        advance()

        def on_epoch(_record: TrainingRecord, _metrics: EpochMetrics) -> None:
            stopwatch.save()

        stopped = run_study(study, jobs=jobs, root=problem.root, progress=progress, on_epoch=on_epoch, on_end=on_end)
        stopwatch.save()
        if stopped != "complete" or interrupt.requested:
            raise DepthInterrupted(study.folder)
        try:
            return _Measurement(study, problem, phases, held_out, progress, stopwatch).answer()
        except Interrupted as error:
            raise DepthInterrupted(study.folder) from error


class _Measurement:
    """Everything that is measured when all networks are trained."""

    def __init__(
        self,
        study: Study,
        problem: Problem,
        phases: Phases,
        held_out: HeldOut,
        progress: DepthProgress,
        stopwatch: Stopwatch,
    ) -> None:
        self.study, self.problem, self.plan, self.slowness = study, problem, phases.plan, phases.slowness
        self.held_out, self.progress, self.stopwatch = held_out, progress, stopwatch
        held_out.seeds = seeds_of(phases.plan)
        progress.phase("measuring every network on the samples it has not seen")
        finalists = phases.finalists()
        held_out.update(finalists)
        best = held_out.best_settings(finalists)
        self.best = sorted(best, key=lambda each: (each.candidate.depth, each.candidate.kind))
        self.choice: Choice = held_out.choose(self.best)
        self.learned = held_out.has_learned(self.best[self.choice.best])
        deepest = max(each.candidate.depth for each in self.best)
        self.deep = next(each for each in self.best if each.candidate == Candidate("highway", deepest))

    def answer(self) -> DepthAnswer:
        """Measure, and write the answer and its page."""
        used, network, learned_from = self._used_and_network()
        others = self._others(learned_from)
        problem, held_out, choice = self.problem, self.held_out, self.choice
        chosen, top = self.best[choice.chosen].candidate, self.best[choice.best].candidate
        dataset = problem.dataset
        assert dataset.held_out is not None
        depth = chosen.depth if self.learned else None
        unmeasured = problem.unmeasured_classes(held_out.seeds)
        wanted = problem.defaults.epochs
        seconds = self.stopwatch.seconds
        kind, interval = dataset.task.kind, choice.interval
        farthest = problem.farthest_target
        notes = make_notes(depth, kind, self.plan, wanted, network, others, unmeasured, seconds, interval, farthest)
        answer = DepthAnswer(
            name=dataset.name,
            depth=depth,
            kind=chosen.kind,
            interval=choice.interval if self.learned else None,
            best_depth=top.depth,
            best_kind=top.kind,
            points=make_points(self.study, self.best, choice, held_out),
            used=used,
            others=others,
            network=network,
            curves=self._curves(),
            measure=self._measure,
            task=dataset.task.kind,
            unit=problem.unit,
            guess_loss=_mean([each.loss for each in held_out.guesses]),
            guess_score=_mean([each.score for each in held_out.guesses]),
            rows=(len(dataset.train), len(dataset.held_out), len(dataset.test)),
            features=dataset.train.x[0].numel(),
            plan=self.plan,
            seconds=seconds,
            source=problem.data.source,
            folder=str(self.study.folder),
            options=_command_options(problem),
            notes=notes,
            validation_rows=0 if dataset.valid is None else len(dataset.valid),
        )
        answer.save(self.study.folder / "depth.json")
        answer.write_page(self.study.folder / "depth.html")
        return answer

    @property
    def _measure(self) -> str:
        return "r2" if self.problem.dataset.task.kind == "regression" else "accuracy"

    def _used_and_network(self) -> tuple[LayersUsed | None, DepthNetwork | None, Dataset]:
        """What the deep networks use, the network that is handed over, unless nothing was learned, and its data."""
        held_out, problem, first = self.held_out, self.problem, self.held_out.seeds[0]
        chosen = self.best[self.choice.chosen]
        trained = held_out.run(chosen, first)
        if not self.learned or trained is None:
            return None, None, problem.whole
        used, usages, deep_run = None, list[DepthUsage](), None
        if self.deep.candidate.depth > 1 and held_out.has_learned(self.deep):
            self.progress.phase(f"closing the layers of {self.deep.candidate.describe(problem.unit)}")
            pairs = [(run, held_out.dataset(seed)) for seed in held_out.seeds if (run := held_out.run(self.deep, seed))]
            plain = problem.hidden_layers(self.deep.candidate.depth) - pairs[0][0].model.highway_depth
            used, usages = layers_used(pairs, plain, self._part)
            deep_run = held_out.run(self.deep, first)
        self.progress.phase("training the network to recommend, and testing it")
        usage, dataset = usages[0] if deep_run is not None else None, held_out.dataset(first)
        whole = problem.whole
        network, learned_from = recommend(self.study.folder, chosen.candidate, trained, deep_run, usage, dataset, whole)
        return used, network, learned_from

    def _part(self, share: float) -> None:
        self.progress.part(share)
        self.stopwatch.save()

    def _others(self, dataset: Dataset) -> tuple[OtherModel, ...]:
        self.progress.phase("fitting other models for comparison")
        self.stopwatch.save()
        minutes = self.plan.minutes or _MINUTES_FOR_OTHERS
        return other_models(dataset, self.plan.seed, seconds=_OTHERS * 60 * minutes / max(1.0, self.slowness))

    def _curves(self) -> tuple[TrainingCurve, ...]:
        """The training loss of the deepest networks with the first seed."""
        found = []
        for each in self.best:
            if each.candidate.depth == self.deep.candidate.depth and each.candidate.depth > 1:
                run = self.study.run_path(f"{each.group}/seed-{self.held_out.seeds[0]}")
                losses = [line.loss for line in Run.load(run).metrics]
                shown = tuple(min(loss, 1e30) for loss in losses if loss is not None)
                found.append(TrainingCurve(each.candidate.kind, each.candidate.depth, shown))
        return tuple(found)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _command_options(problem: Problem) -> tuple[str, ...]:
    """The options of the command line for the data and for all trainings, one word each."""
    data, settings = problem.data, problem.settings
    plain = dotted(to_dict(DataConfig(data.source)))
    words: list[str] = []
    if settings.loss is not None:
        words += ["--loss", settings.loss]
    if settings.class_weight:
        words += ["--class-weight", ",".join(settings.class_weight)]
    for name, value in dotted(to_dict(data)).items():
        if value != plain[name] and name not in ("source", "folds", "fold"):
            words.append(f"--{name}" if name == "target" else f"--data.{name}".replace("_", "-"))
            if value is not True:  # a switch
                words.append(",".join(map(str, value)) if isinstance(value, list) else str(value))
    return tuple(words)
