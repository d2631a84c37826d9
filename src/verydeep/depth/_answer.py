"""What `how_deep` returns: the answer, the networks it rests on, and what else was measured."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from verydeep.config import from_dict, to_dict
from verydeep.depth._plan import DepthPlan, read_plan
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.notebook import html_card
from verydeep.words import named_score, plural, score

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Literal["highway", "plain"]
_FORMAT = 1


@dataclass(frozen=True)
class DepthPoint:
    """Networks of one kind and depth, trained afresh with several seeds, each holding out another part of the data.

    Attributes:
        kind: `highway` or `plain`; below two layers, both are the same network, which counts as `highway`.
        depth: The number of hidden layers, the plain input layer included; of a convolutional network, the number of
            layers per stage. 0 is the linear model.
        loss: The mean loss on held-out data.
        excess: By how much that is above the loss of the best network, which is chosen by other seeds than the one
            it is compared on; negative if this network is better than those.
        excess_error: The standard error of that difference, paired over samples and seeds.
        score: The mean accuracy, or R2, on held-out data.
        score_low: The lower end of its 95 % interval; None with fewer than three seeds.
        score_high: The upper end.
        seed_losses: The loss of each seed.
        seed_scores: The score of each seed.
        seeds: The seeds that were trained.
        diverged: How many of the seeds diverged; they count with the loss of a blind guess.
        settings: The settings that its own search found best, such as `optim.lr=0.1`.
        parameters: The number of parameters.
        multiply_adds: Multiply-adds per sample.
        epochs: The mean number of epochs until the best one.
        seconds: The mean training time of a seed.

    Example:
        >>> from verydeep.depth import DepthPoint
        >>> DepthPoint("highway", 2, loss=0.1, score=0.97).depth
        2
    """

    kind: Kind
    depth: int
    loss: float
    score: float
    excess: float = 0.0
    excess_error: float = 0.0
    score_low: float | None = None
    score_high: float | None = None
    seed_losses: tuple[float, ...] = ()
    seed_scores: tuple[float, ...] = ()
    seeds: tuple[int, ...] = ()
    diverged: int = 0
    settings: tuple[str, ...] = ()
    parameters: int = 0
    multiply_adds: int = 0
    epochs: float = 0.0
    seconds: float = 0.0

    @property
    def is_enough(self) -> bool:
        """Whether its loss is within one standard error of the best depth's."""
        return self.excess <= self.excess_error


@dataclass(frozen=True)
class LayersUsed:
    """How many layers the trained deep network uses: its layers are closed one after the other on held-out data.

    All counts are depths: the highway layers that stay open, and the plain input layer.

    Attributes:
        depth: The depth of the network.
        used: The depth that it uses: the median over the seeds.
        seeds: The depth that each seed uses.
        interval: The 95 % interval of `used`, over samples and seeds; None with fewer than three seeds.
        kept: Depths from 1 to `depth`: how many layers are kept on the curve.
        score: The mean accuracy, or R2, with that many layers kept, the most dispensable ones closed first.
        score_low: The lower end of its 95 % interval at each depth.
        score_high: The upper end.
        cost: By how much closing each single highway layer raises the held-out loss, the mean over the seeds.
        cost_error: The standard error of each cost.
        samples: The number of held-out samples of all seeds together.

    Example:
        >>> from verydeep.depth import LayersUsed
        >>> LayersUsed(50, used=12, seeds=(11, 12, 14)).used
        12
    """

    depth: int
    used: int
    seeds: tuple[int, ...] = ()
    interval: tuple[int, ...] | None = None
    kept: tuple[int, ...] = ()
    score: tuple[float, ...] = ()
    score_low: tuple[float, ...] = ()
    score_high: tuple[float, ...] = ()
    cost: tuple[float, ...] = ()
    cost_error: tuple[float, ...] = ()
    samples: int = 0


@dataclass(frozen=True)
class OtherModel:
    """A model of another kind on the same data, for comparison.

    Attributes:
        name: What it is called, such as `gradient boosting`.
        score: Its accuracy, or R2, on the test data.
        score_low: The lower end of its 95 % interval.
        score_high: The upper end.
        rows: The number of training rows it was fitted to.
        all_rows: The number of training rows there are.
        seconds: How long fitting took.
        note: Why it was left out, or what is special; empty otherwise.

    Example:
        >>> from verydeep.depth import OtherModel
        >>> OtherModel("gradient boosting", 0.979).score
        0.979
    """

    name: str
    score: float | None
    score_low: float | None = None
    score_high: float | None = None
    rows: int = 0
    all_rows: int = 0
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class DepthNetwork:
    """The network that `how_deep` recommends, saved as a run.

    Attributes:
        path: The run's folder, relative to the answer's.
        made: `trained` at this depth, or `pruned` from the deep network and fine-tuned.
        kind: `highway` or `plain`.
        depth: Its depth.
        parameters: The number of parameters.
        valid_loss: Its loss on validation data, before it was trained again with the samples that were held out.
        rival_loss: That of the network made the other way, which was worse; None if there was none.
        test_score: Its accuracy, or R2, on the test data.
        test_low: The lower end of its 95 % interval.
        test_high: The upper end.
        test_samples: The number of test samples.
        rows: The number of samples it was trained on. A pruned one has not seen those that its seed held out.

    Example:
        >>> from verydeep.depth import DepthNetwork
        >>> DepthNetwork("network", "trained", "highway", depth=2).made
        'trained'
    """

    path: str
    made: Literal["trained", "pruned"]
    kind: Kind
    depth: int
    parameters: int = 0
    valid_loss: float = 0.0
    rival_loss: float | None = None
    test_score: float | None = None
    test_low: float | None = None
    test_high: float | None = None
    test_samples: int = 0
    rows: int = 0


@dataclass(frozen=True)
class TrainingCurve:
    """The training loss of the deepest network of each kind, epoch by epoch.

    Attributes:
        kind: `highway` or `plain`.
        depth: Its depth.
        loss: The mean training loss of each epoch, with the first seed.

    Example:
        >>> from verydeep.depth import TrainingCurve
        >>> TrainingCurve("plain", 50, (2.3, 2.3)).loss[-1]
        2.3
    """

    kind: Kind
    depth: int
    loss: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class DepthAnswer:
    """How deep a network must be for some data; `how_deep` computes it.

    Attributes:
        name: The name of the data.
        depth: The answer: the smallest depth whose mean held-out loss is within one standard error of the best
            depth's; None if no network is better than a blind guess.
        kind: The kind of network that reaches it: `highway` or `plain`.
        interval: The 95 % interval of the answer: its range over 1,000 bootstrap draws of seeds and samples; None with
            fewer than three seeds.
        best_depth: The depth with the lowest held-out loss.
        best_kind: Its kind.
        points: Every kind and depth that was trained, in ascending order.
        used: How many layers the trained deep network uses; None if it has no highway layers or learned nothing.
        others: Models of other kinds.
        network: The recommended network; None if no network has learned anything.
        curves: The training loss of the deepest networks.
        measure: What the score is called: `accuracy`, or `r2`.
        task: `classification`, `regression` or `multilabel`.
        unit: What depth counts: `layers`, or `layers per stage` of convolutional networks.
        guess_loss: The held-out loss of a blind guess.
        guess_score: Its score.
        rows: The number of training, held-out (per seed) and test samples.
        features: The number of inputs.
        plan: What was trained, and why.
        seconds: How long everything took.
        source: The data as it was given.
        folder: Where everything is.
        options: The options of the command line that belong to the data and to all trainings, such as `--target
            species`, one word each.
        notes: What one should know before relying on the answer, in sentences; usually empty.
        validation_rows: The number of samples that stop each training early.

    Example:
        >>> from verydeep.depth import DepthAnswer, DepthPoint, DepthPlan
        >>> points = tuple(DepthPoint("highway", depth, loss, score) for depth, loss, score in
        ...     ((0, 0.9, 0.7), (1, 0.2, 0.95), (2, 0.19, 0.95)))
        >>> DepthAnswer("moons", 1, "highway", (1, 2), 2, "highway", points).sentence
        '1 layer is enough (95 % interval 1 to 2).'
    """

    name: str
    depth: int | None
    kind: Kind
    interval: tuple[int, ...] | None
    best_depth: int
    best_kind: Kind
    points: tuple[DepthPoint, ...]
    used: LayersUsed | None = None
    others: tuple[OtherModel, ...] = ()
    network: DepthNetwork | None = None
    curves: tuple[TrainingCurve, ...] = ()
    measure: str = "accuracy"
    task: str = "classification"
    unit: str = "layers"
    guess_loss: float = 0.0
    guess_score: float = 0.0
    rows: tuple[int, ...] = (0, 0, 0)
    features: int = 0
    plan: DepthPlan = DepthPlan()  # noqa: RUF009 - frozen
    seconds: float = 0.0
    source: str = ""
    folder: str = ""
    options: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    validation_rows: int = 0

    def __post_init__(self) -> None:
        for interval in (self.interval, None if self.used is None else self.used.interval):
            if interval is not None and len(interval) != 2:
                raise UserError(f"an interval has two ends, got {list(interval)}")

    @property
    def learned(self) -> bool:
        """Whether any network is better than a blind guess."""
        return self.depth is not None

    @property
    def sentence(self) -> str:
        """The answer in a sentence or two."""
        if self.depth is None:
            return (
                f"No network learned anything: on held-out data, none of depth {self._depths()} is better than a blind "
                f"guess."
            )
        parts = [f"{self._enough()}{self._interval_text()}{self._test_text()}"]
        if deeper := self._deeper_text():
            parts.append(deeper)
        parts += [self._other_text(other) for other in self.others if other.score is not None]
        return "; ".join(parts) + "."

    @property
    def disagreement(self) -> str:
        """Where closing layers and training again give different answers, and what that means; empty if they agree."""
        used = self.used
        if used is None or self.depth is None or self.unit != "layers":
            return ""
        low, high = used.interval or (used.used, used.used)
        first, last = self.interval or (self.depth, self.depth)
        last = max(1, last)  # the plain input layer cannot be closed
        if (low <= last and first <= high) or used.depth <= self.depth:
            return ""
        if used.used > self.depth:
            fresh = f"a fresh network of {plural(self.depth, 'layer')}" if self.depth else "a linear model"
            return (
                f"The trained network of {used.depth} layers uses {used.used} of them, but {fresh} is as good: the "
                f"deep one spreads its work over more layers than it needs."
            )
        return (
            f"The trained network of {used.depth} layers uses only {used.used} of them, but a fresh network needs "
            f"{plural(self.depth, 'layer')}: with more layers to choose from, training finds a shorter way."
        )

    def point(self, depth: int, kind: Kind = "highway") -> DepthPoint | None:
        """The result of one kind and depth; None if it was not trained.

        Args:
            depth: The depth; below two layers, both kinds are the same.
            kind: `highway` or `plain`.
        """
        kind = "highway" if depth < 2 else kind
        return next((each for each in self.points if (each.depth, each.kind) == (depth, kind)), None)

    def curve(self, kind: Kind) -> tuple[DepthPoint, ...]:
        """All depths of one kind, ascending; the two shallowest networks belong to both.

        Args:
            kind: `highway` or `plain`.
        """
        return tuple(each for each in self.points if each.kind == kind or each.depth < 2)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Figure:  # noqa: ANN401
        """Draw the score against depth. A notebook shows the figure.

        Args:
            path: The file to write, `.png`, `.svg` or `.pdf`; by default none.
            **options: Options of `verydeep.report.plot_depth`, such as `theme="dark"`.
        """
        from verydeep.depth._display import draw

        figure: Figure = draw("plot_depth", self, path, **options)
        return figure

    def write_page(self, path: str | os.PathLike[str]) -> None:
        """Write the answer as a self-contained HTML page.

        Args:
            path: The file to write.
        """
        from verydeep.depth._display import draw

        draw("write_depth_page", self, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the answer as JSON; `DepthAnswer.load` reads it.

        Args:
            path: The file to write.
        """
        write_atomic(Path(path), json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"format": _FORMAT} | to_dict(self) | {"sentence": self.sentence}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DepthAnswer:
        """Read an answer.

        Args:
            path: A `depth.json`, or the folder that holds it.
        """
        file = Path(path)
        file = file / "depth.json" if file.is_dir() else file
        return cls.from_dict(read_json(file), str(file))

    @classmethod
    def from_dict(cls, values: dict[str, Any], where: str) -> DepthAnswer:
        """Build an answer from plain values.

        Args:
            values: What `to_dict` returned.
            where: What error messages call the source of the values.
        """
        if values.get("format") != _FORMAT:
            raise UserError(f"{where} is not an answer of this version; was it written by another version?")
        known = {key: each for key, each in values.items() if key not in ("format", "sentence")}
        if "plan" in known:
            known["plan"] = to_dict(read_plan(known["plan"], where))
        return from_dict(cls, known, where)

    def __repr__(self) -> str:
        return f"<DepthAnswer for {self.name}: {self.sentence}>"

    def _repr_html_(self) -> str:
        rows = [("answer", self.sentence)]
        rows += [
            (f"{each.kind}, {self._layers(each.depth)}", named_score(self.measure, each.score)) for each in self.points
        ]
        return html_card(f"How deep must a network be for {self.name}?", rows, [self.plot()._repr_png_()])  # type: ignore[attr-defined]

    def _depths(self) -> str:
        depths = sorted({each.depth for each in self.points})
        return ", ".join(map(str, depths[:-1])) + f" and {depths[-1]}" if len(depths) > 1 else str(depths[0])

    def _layers(self, depth: int) -> str:
        if self.unit == "layers":
            return "no hidden layer" if depth == 0 else plural(depth, "layer")
        return "no hidden layer" if depth == 0 else plural(depth, "layer") + " per stage"

    def _enough(self) -> str:
        if self.depth == 0:
            return "A linear model is enough"
        which = " of a plain network" if self.kind == "plain" else ""
        return f"{self._layers(self.depth or 0)}{which} {'is' if self.depth == 1 else 'are'} enough"

    def _interval_text(self) -> str:
        if self.interval is None:
            return ""
        low, high = self.interval
        return f" (95 % interval {low} to {high})"

    def _test_text(self) -> str:
        network = self.network
        if network is None or network.test_score is None:
            return ""
        return f": {named_score(self.measure, network.test_score)} on test data"

    def _other_text(self, other: OtherModel) -> str:
        some = f" (fitted to {other.rows:,} of {other.all_rows:,} rows)" if other.rows < other.all_rows else ""
        return f"{other.name} has {score(self.measure, other.score or 0.0)}{some}"

    def _deeper_text(self) -> str:
        deeper = [each for each in self.points if self.depth is not None and each.depth > self.depth]
        if not deeper or self.network is None:
            return ""
        return "deeper networks gain nothing measurable"
