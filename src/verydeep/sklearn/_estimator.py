"""What the classifier and the regressor have in common: settings, training, predictions, lesions and pickling."""

from __future__ import annotations

import copy
import threading
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from safetensors.torch import load, save
from sklearn.base import BaseEstimator, clone  # type: ignore[import-untyped]
from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
from torch import Tensor

from verydeep import analysis
from verydeep.config import from_dict, to_dict
from verydeep.cpu import cpu_settings
from verydeep.data import Dataset, Inputs, Split, TablePreparation, Task, UnpreparedSplit, add_splits, ready_targets
from verydeep.errors import UserError
from verydeep.models import MLP, MLPConfig, build, separate
from verydeep.objectives import Metric, Objective, find_metric
from verydeep.sklearn._samples import Preparation, Samples, check_samples, fit_samples, prepare_samples
from verydeep.sklearn._weighted import MetricWithoutWeights, WeightedObjective
from verydeep.terminal import echo
from verydeep.training import (
    ScheduleConfig,
    TrainConfig,
    TrainedNetwork,
    TrainingState,
    choose_settings,
    make_model,
    make_objective,
    make_progress,
    suggest_threads,
    train_in_memory,
)

if TYPE_CHECKING:
    from verydeep.analysis import LesionStudy

_MOST_KEPT = 5000  # training samples that are kept to count the layers used
_BATCH = 1000  # samples that are predicted together
_lock = threading.Lock()  # training seeds torch's generator and sets how the processor rounds, for the whole process


class HighwayEstimator(BaseEstimator):  # type: ignore[misc]
    """A highway network that follows scikit-learn's conventions. Subclasses say what the targets are."""

    network_: MLP
    inputs_: Inputs
    n_iter_: int
    loss_curve_: list[float]
    _completed: TrainConfig
    _state: TrainingState | None
    _measured: tuple[Split, Split | None] | None  # samples of training and held-out ones, for layers_needed_
    _layers_needed: int | None

    def _task(self, y: Tensor) -> Task:
        """What is predicted, given the targets of the training rows."""
        raise NotImplementedError

    def _encode(self, y: Any, count: int) -> Tensor:  # noqa: ANN401
        """The targets of a fitted estimator as its network learns them."""
        raise NotImplementedError

    def _own_settings(self) -> dict[str, Any]:
        """The settings of `TrainConfig` that only this estimator has."""
        raise NotImplementedError

    @property
    def layers_needed_(self) -> int:
        """How many highway layers the network uses, counted as `verydeep analyze` does; computed when it is first read.

        Layers are closed one after the other in an order selected on training samples, and counted on the samples held
        out for validation, without a loss of accuracy or R2 above 0.001 or one standard error. If none were held out,
        they are counted on the training samples; after `partial_fit`, on those of its last call. A network without
        highway layers needs 0.

        The samples are kept in memory for this, but not in a pickle: read the attribute before saving the estimator.
        """
        if not hasattr(self, "network_"):
            raise AttributeError("layers_needed_ is known after fit")
        if self._layers_needed is None:
            if self._measured is None:
                raise AttributeError(
                    "layers_needed_ is not known, because a saved estimator does not hold its samples; read it before "
                    "saving, or use verydeep.analysis.depth_usage with samples of your own"
                )
            self._layers_needed = self._count_layers(*self._measured)
        return self._layers_needed

    def _count_layers(self, train: Split, held_out: Split | None) -> int:
        if not analysis.highway_layers(self.network_):
            return 0
        network = copy.deepcopy(self.network_).cpu()
        if held_out is None:
            greedy = analysis.greedy_lesions(network, train, "train")
        else:
            greedy = analysis.greedy_lesions(network, held_out, "valid", train=train)
        return len(analysis.depth_usage(greedy).kept)

    def lesions(self, X: Any, y: Any) -> LesionStudy:  # noqa: ANN401, N803
        """Close each highway layer in turn and measure the network: which layers matter, and how much?

        Args:
            X: Samples, best not those of training.
            y: Their targets.

        Returns:
            Loss and error with each layer closed, and with none; its `plot` draws them.

        Example:
            >>> from sklearn.datasets import load_iris
            >>> from verydeep.sklearn import HighwayClassifier
            >>> X, y = load_iris(return_X_y=True)
            >>> model = HighwayClassifier(depth=5, width=8, epochs=20, random_state=0).fit(X, y)
            >>> len(model.lesions(X, y).layers)  # all but the input layer
            4
        """
        split = self._split(X, y)
        return analysis.lesion_study(self.network_, split)

    def prune(self, X: Any, y: Any, tolerance: float = 0.001) -> Self:  # noqa: ANN401, N803
        """Make a smaller estimator without the layers that are idle on some samples.

        Layers are closed one after the other, the cheapest first, as long as the error grows by no more than the
        tolerance.

        Args:
            X: Samples, best not those of training.
            y: Their targets.
            tolerance: The largest loss of accuracy allowed, or of R2 for a regression; 0.001 is 0.1 %.

        Returns:
            A fitted estimator; its `depth` is that of the smaller network. This one is not changed.

        Example:
            >>> from sklearn.datasets import load_iris
            >>> from verydeep.sklearn import HighwayClassifier
            >>> X, y = load_iris(return_X_y=True)
            >>> model = HighwayClassifier(depth=5, width=8, epochs=20, random_state=0).fit(X, y)
            >>> smaller = model.prune(X, y, tolerance=0.01)
            >>> smaller.depth <= model.depth and smaller.score(X, y) >= model.score(X, y) - 0.01
            True
        """
        split = self._split(X, y)
        greedy = analysis.greedy_lesions(self.network_, split)
        network = analysis.prune(self.network_, analysis.depth_usage(greedy, tolerance))
        depth = network.config.depth
        pruned: Self = clone(self).set_params(depth=depth)
        fitted = {name: value for name, value in vars(self).items() if name not in self.get_params(deep=False)}
        pruned.__dict__.update(fitted, network_=network, _state=None, _layers_needed=None)
        pruned._completed = replace(self._completed, model=replace(self._completed.model, depth=depth))
        return pruned

    def _split(self, X: Any, y: Any) -> Split:  # noqa: ANN401, N803
        """Samples and targets as the network takes them."""
        samples = self._samples(X)
        return Split(samples, self._encode(y, len(samples)), task=self.inputs_.task)

    def _samples(self, X: Any) -> Tensor:  # noqa: ANN401, N803
        check_is_fitted(self)
        preparation = self.inputs_.preparation
        return prepare_samples(preparation, check_samples(self, X, preparation))

    def _outputs(self, X: Any) -> Tensor:  # noqa: ANN401, N803
        """What the network returns for samples, float64."""
        samples = self._samples(X)
        with cpu_settings(suggest_threads(self.network_, min(len(samples), _BATCH))), torch.inference_mode():
            return torch.cat([self.network_(batch) for batch in samples.split(_BATCH)]).double()

    def _fit(self, samples: Samples, y: Tensor, weight: np.ndarray | None) -> Self:
        """Train a new network.

        Args:
            samples: Raw samples.
            y: Class numbers, or targets or labels, float64, `(n, targets)`.
            weight: The weights of the samples; their mean becomes 1.
        """
        config = self._config()
        rows = torch.arange(len(y)) if weight is None else torch.from_numpy(np.flatnonzero(weight))
        whole = UnpreparedSplit(rows, y[rows])
        splits = add_splits({"train": whole, "test": UnpreparedSplit(rows[:0], y[:0])}, config.data)
        chosen = {name: split.x for name, split in splits.items() if isinstance(split.x, Tensor)}
        if self.patience and "valid" not in chosen:
            raise UserError("patience needs validation samples; set validation_fraction, for example to 0.1")
        preparation = self._fit_preparation(samples[chosen["train"]])
        task = self._task(y[chosen["train"]])
        parts = {
            name: self._make_split(samples[part], y[part], preparation, task) if len(part) else None
            for name, part in chosen.items()
        }
        weights = None
        if weight is not None:
            relative = torch.from_numpy(weight / weight[rows].mean())
            weights = {name: relative[part] for name, part in chosen.items()}
        dataset = _dataset(parts["train"], parts.get("valid"), preparation, task)
        self._adopt(self._train(config, dataset, weights), Inputs.of(dataset), [], dataset)
        self._state = None  # the weights are those of the best epoch, and not those that the optimiser stopped at
        return self

    def _partial_fit(self, samples: Samples, y: Tensor, weight: np.ndarray | None) -> Self:
        """Train one more epoch on these samples; otherwise like `_fit`, but weights are used as they are."""
        first = not hasattr(self, "network_")
        if first:
            preparation = self._fit_preparation(samples)
            task = self._task(y)
        else:
            preparation, task = self.inputs_.preparation, self.inputs_.task
        dataset = _dataset(self._make_split(samples, y, preparation, task), None, preparation, task)
        done = 0 if first else self.n_iter_
        config = self._config() if first else self._completed
        config = replace(config, epochs=done + 1, schedule=ScheduleConfig("constant"), patience=0)
        if config.optim.weight_decay is None:  # the part says nothing about how much data there is in all
            config = replace(config, optim=replace(config.optim, weight_decay=0.0))
        weights = None if weight is None else {"train": torch.from_numpy(weight)}
        if first:
            return self._adopt(self._train(config, dataset, weights), Inputs.of(dataset), [], dataset)
        start = self._state or TrainingState(done)
        trained = self._train(config, dataset, weights, copy.deepcopy(self.network_), start)
        return self._adopt(trained, self.inputs_, self.loss_curve_, dataset)

    def _train(
        self,
        config: TrainConfig,
        dataset: Dataset,
        weights: dict[str, Tensor] | None,
        model: MLP | None = None,
        start: TrainingState | None = None,
    ) -> TrainedNetwork:
        objective: Objective | None = None
        metrics: tuple[Metric, ...] = ()
        if weights is not None:
            measured = make_objective(config, dataset)
            objective = WeightedObjective(measured, max(1.0, float(weights["train"].max())))
            if config.metric not in (None, "loss", measured.measure):
                metrics = (MetricWithoutWeights(**vars(find_metric(config.metric, dataset.task))),)
            dataset = replace(
                dataset,
                train=_with_weights(dataset.train, weights["train"]),
                valid=None if dataset.valid is None else _with_weights(dataset.valid, weights["valid"]),
            )
        config = choose_settings(config, dataset, user_supplied=True)
        config = replace(
            config, threads=suggest_threads(make_model(config, dataset) if model is None else model, config.batch_size)
        )
        progress = make_progress(quiet=not self.verbose)
        with _lock:
            return train_in_memory(
                config, dataset, model=model, start=start, objective=objective, metrics=metrics, progress=progress
            )

    def _adopt(self, trained: TrainedNetwork, inputs: Inputs, losses: list[float], dataset: Dataset) -> Self:
        assert isinstance(trained.model, MLP)
        if trained.status == "diverged":
            warnings.warn(
                f"training diverged in epoch {len(trained.metrics)}; the weights before are used. "
                f"Choose a lower learning rate than {trained.config.optim.lr}.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.network_, self.inputs_, self._completed = trained.model, inputs, trained.config
        self._state = trained.state
        self.loss_curve_ = losses + [float("inf") if line.loss is None else line.loss for line in trained.metrics]
        validation = [line.valid_loss for line in trained.metrics if line.valid_loss is not None]
        self.validation_loss_curve_ = validation or None
        self.n_iter_ = len(self.loss_curve_)
        few = analysis.some_samples(dataset.train, _MOST_KEPT)
        assert isinstance(few, Split)
        self._measured, self._layers_needed = (few, dataset.valid), None
        return self

    def _make_split(self, samples: Samples, y: Tensor, preparation: Preparation, task: Task) -> Split:
        return Split(prepare_samples(preparation, samples), ready_targets(task, y), task=task)

    def _fit_preparation(self, samples: Samples) -> Preparation:
        preparation = fit_samples(samples, () if self.categorical is None else tuple(self.categorical))
        if self.verbose and isinstance(preparation, TablePreparation):
            echo("\n".join(preparation.describe()))
        return preparation

    def _config(self) -> TrainConfig:
        """The settings that were given; the others are chosen for the data."""
        seed = self._seed()
        validation = "auto" if self.validation_fraction is None else self.validation_fraction
        settings = {
            "data": {"source": "X", "preprocess": "standardise", "validation": validation, "seed": seed},
            "model": {name: getattr(self, name) for name in ("depth", "width", "activation", "gate_bias")},
            "optim": {"name": self.optimiser, "lr": self.lr, "weight_decay": self.weight_decay},
            "schedule": {"name": self.schedule},
            **{name: getattr(self, name) for name in ("epochs", "batch_size", "metric", "patience", "device")},
            **self._own_settings(),
            "seed": seed,
            "evaluate_test": "never",
        }
        return from_dict(TrainConfig, _given(settings), type(self).__name__)

    def _seed(self) -> int:
        """The random state as a seed; a number is the seed itself."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def __getstate__(self) -> dict[str, Any]:
        """Plain values, with the weights as safetensors."""
        state = dict(super().__getstate__())
        network = state.pop("network_", None)
        if network is None:
            return state
        state["_measured"] = None  # a pickle holds no samples
        inputs, completed, training = state.pop("inputs_"), state.pop("_completed"), state.pop("_state", None)
        state["_saved"] = {
            "network": to_dict(network.config),
            "weights": save(separate(network.state_dict())),
            "inputs": to_dict(inputs),
            "config": to_dict(completed),
            "training": None if training is None else _save_state(training),
        }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build the network again."""
        state = dict(state)
        saved = state.pop("_saved", None)
        if saved is not None:
            state = {"_measured": None, "_layers_needed": None} | state  # estimators of earlier versions have neither
        super().__setstate__(state)
        if saved is None:
            return
        with torch.device("meta"):
            network = build(from_dict(MLPConfig, saved["network"], "network"))
        network.load_state_dict(load(saved["weights"]), assign=True)
        assert isinstance(network, MLP)
        self.network_ = network.eval()
        self.inputs_ = from_dict(Inputs, saved["inputs"], "inputs")
        self._completed = from_dict(TrainConfig, saved["config"], "config")
        self._state = None if saved["training"] is None else _load_state(*saved["training"])


def _dataset(train: Split | None, valid: Split | None, preparation: Preparation, task: Task) -> Dataset:
    assert train is not None
    nothing = Split(train.x[:0], train.y[:0], task=task)
    return Dataset("X", train, valid, nothing, task.names if task.kind == "classification" else (), preparation, task)


def _with_weights(split: Split, weights: Tensor) -> Split:
    return replace(split, y=WeightedObjective.join(split.y, weights))


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    """Plain values of the settings that are not None."""
    found = {name: _given(value) if isinstance(value, dict) else value for name, value in settings.items()}
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in found.items()
        if value is not None
    }


def _save_state(state: TrainingState) -> tuple[int, bytes, bool]:
    tensors = {
        f"{index}.{name}": torch.as_tensor(value)
        for index, values in state.optimiser.items()
        for name, value in values.items()
        if value is not None
    }
    return state.epochs, save(separate(tensors)), state.in_kernels


def _load_state(epochs: int, saved: bytes, in_kernels: bool = False) -> TrainingState:
    optimiser: dict[int, dict[str, Tensor]] = {}
    for key, value in load(saved).items():
        index, _, name = key.partition(".")
        optimiser.setdefault(int(index), {})[name] = value
    return TrainingState(epochs, optimiser, in_kernels)
