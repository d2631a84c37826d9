"""Predictions of a run's network for new samples, in the words and units of its training data."""

import warnings
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from verydeep.cpu import cpu_settings
from verydeep.data import DataConfig, NewSamples, Rows, Table, TableOptions, TablePreparation, iterate_new
from verydeep.errors import UserError, shorten
from verydeep.objectives import objective_for
from verydeep.training.run._run import Run
from verydeep.training.run._run_data import RunData

_BATCH_SIZE = 1000
_COUNTED, _NAMED = 1000, 5  # of a column's new categories


@dataclass(frozen=True)
class Predictions:
    """Predictions for some new samples.

    Attributes:
        samples: What was predicted from.
        answers: The names of the classes, `(n,)`; numbers in their original units, float64, or labels 0 and 1, int64,
            `(n, targets)`.
        probabilities: The probability of each class or label, float32, `(n, classes)`; None for a regression.
    """

    samples: NewSamples
    answers: np.ndarray
    probabilities: np.ndarray | None


class Predictor:
    """A run's network, with what its data.json says about inputs and outputs.

    Args:
        run: The run.
        device: The device to compute on; by default, that of the network.
        data: How tables are read; by default, as the training data was.
    """

    def __init__(self, run: Run, device: torch.device | str | None = None, data: DataConfig | None = None) -> None:
        self.preparation = RunData.load(run).preparation
        self.task = run.task
        self.model = run.model if device is None else run.model.to(device)
        self._objective = objective_for(self.task)
        self._config = data or run.config.data

    def parts(self, rows: Rows, keep: Collection[str] | None = ()) -> Iterator[Predictions]:
        """Predict part by part, so that memory is bounded; a warning at the end names categories that are new.

        Args:
            rows: The samples, as `Run.predict` takes them, or a stream of bytes with CSV.
            keep: Columns of a table to be read as they are written; None for all.
        """
        unknown = _UnknownCategories()
        for samples in self.read(rows, keep):
            if isinstance(self.preparation, TablePreparation) and isinstance(samples.raw, Table):
                unknown.add(self.preparation.unknown_categories(samples.raw))
            yield self.answer(samples)
        unknown.warn()

    def read(self, rows: Rows, keep: Collection[str] | None = ()) -> Iterator[NewSamples]:
        """Read and prepare new samples part by part."""
        return iterate_new(rows, self.preparation, self._options(keep))

    def extra_columns(self, samples: NewSamples) -> list[str]:
        """The columns of a table that training data did not have, as far as is known."""
        if not isinstance(samples.raw, Table) or not isinstance(self.preparation, TablePreparation):
            return []
        ignored = (column.name for column in self.preparation.ignored)
        known = {*self.preparation.names, *ignored, *self._config.ignore, *self.task.target}
        return [name for name in samples.raw.columns if name not in known]

    def answer(self, samples: NewSamples) -> Predictions:
        """Predict for samples that have been read."""
        outputs = self._outputs(samples.x)
        probabilities = self._objective.probabilities(outputs)
        answers = self._objective.answer(outputs)
        if self.task.kind == "classification":
            named = np.array(self.task.names)[answers.numpy()]
        elif self.task.kind == "multilabel":
            named = answers.to(torch.int64).numpy()
        else:
            named = self.task.restore(answers).numpy()
        _require_finite(samples, answers if probabilities is None else probabilities)
        return Predictions(samples, named, None if probabilities is None else probabilities.numpy())

    def _outputs(self, x: Tensor) -> Tensor:
        if len(x) == 0:
            return torch.zeros(0, self.task.outputs)
        device = next((parameter.device for parameter in self.model.parameters()), torch.device("cpu"))
        with cpu_settings(), torch.inference_mode():
            return torch.cat([self.model(batch.to(device)).float().cpu() for batch in x.split(_BATCH_SIZE)])

    def _options(self, keep: Collection[str] | None) -> TableOptions:
        """Read as the training data was read."""
        text = self.preparation.text_columns if isinstance(self.preparation, TablePreparation) else frozenset[str]()
        config = self._config
        written = TableOptions(config.delimiter, config.decimal, config.encoding, all_text=keep is None)
        return replace(written, text=text | frozenset(keep or ()))


def _require_finite(samples: NewSamples, numbers: Tensor) -> None:
    """Raise at the first sample whose values are so large that the network's numbers overflow."""
    bad = np.flatnonzero(~numbers.isfinite().all(1).numpy())
    if len(bad):
        raw, first = samples.raw, int(bad[0])
        image = samples.files[first] if samples.files else "rows"
        place = f"{raw.path}: {raw.row(first)}" if isinstance(raw, Table) else image
        raise UserError(
            f"{place}: the network's answer is not finite, because the values are far outside the training data; "
            "correct or remove them"
        )


def predict(run: Run, rows: Rows) -> np.ndarray:
    """The predictions for all rows; see `Run.predict`."""
    predictor = Predictor(run)
    answers = np.concatenate([part.answers for part in predictor.parts(rows)])
    return answers[:, 0] if predictor.task.kind == "regression" and predictor.task.outputs == 1 else answers


def predict_proba(run: Run, rows: Rows) -> np.ndarray:
    """The probabilities for all rows; see `Run.predict_proba`."""
    predictor = Predictor(run)
    if predictor.task.kind == "regression":
        raise UserError(f"{run.path} predicts numbers, which have no probabilities; use run.predict")
    return np.concatenate([part.probabilities for part in predictor.parts(rows) if part.probabilities is not None])


class _UnknownCategories:
    """Counts the values of categories that the training data did not have."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.values: dict[str, Counter[str]] = {}

    def add(self, found: dict[str, dict[str, int]]) -> None:
        for name, counts in found.items():
            self.rows[name] += sum(counts.values())
            values = self.values.setdefault(name, Counter())
            for value, count in counts.items():
                if value in values or len(values) < _COUNTED:
                    values[value] += count

    def warn(self) -> None:
        for name, values in self.values.items():
            rows = self.rows[name]
            listed = ", ".join(f"{shorten(value)} ({count:,})" for value, count in values.most_common(_NAMED))
            more = len(values) - _NAMED
            others = f" and {'more than ' * (len(values) == _COUNTED)}{more} more" if more > 0 else ""
            warnings.warn(
                f"column {name!r} has values in {rows:,} row{'s' * (rows != 1)} that the training data did not have: "
                f"{listed}{others}; they are encoded as none of the known values",
                stacklevel=4,
            )
