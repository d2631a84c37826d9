"""`HighwayRegressor`: one or several numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import RegressorMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
from torch import Tensor

from verydeep.data import Task
from verydeep.sklearn._estimator import HighwayEstimator
from verydeep.sklearn._samples import check_samples, check_targets, check_weights


class HighwayRegressor(RegressorMixin, HighwayEstimator):  # type: ignore[misc]
    """A highway network that predicts numbers, as a scikit-learn estimator.

    Settings that are None are chosen for the data, as `verydeep train` does. Arrays are standardised. In a DataFrame of
    pandas or polars, gaps are filled and categories one-hot encoded. Targets are standardised too, and predictions are
    in their original units. Training is deterministic for a given `random_state`, and leaves no files.

    Args:
        depth: Number of hidden layers; 0 is a linear model.
        width: Number of units per layer.
        activation: Activation of the hidden layers: `tanh` or `relu`.
        gate_bias: Initial bias of the transform gates; by default, one that suits the depth.
        epochs: Number of passes over the training samples.
        batch_size: Samples per update.
        lr: Learning rate before the schedule.
        optimiser: `sgd`, `adam` or `muon`.
        weight_decay: Weight decay of weights; biases have none.
        schedule: How the learning rate changes: `constant`, `one-cycle` or `cosine`.
        loss: `squared`; `huber`, which is squared up to an error of one standard deviation of the target and absolute
            beyond; or `absolute`. By default, squared.
        metric: The metric on validation samples by which the best epoch is selected and `patience` counts: `loss`,
            `r2`, `rmse` or `mae`.
        validation_fraction: The fraction, or number, of samples held out for validation; 0 holds out none. By default,
            15 % if there are at least 20 samples.
        patience: Stop when the metric has not improved for this many epochs; 0 trains to the end.
        categorical: Columns of a DataFrame to treat as categories although they look like numbers.
        random_state: Seed, or NumPy's random state, of initial weights, the order of samples and the held-out ones.
        device: The device to train on, such as `cpu` or `cuda`; `auto` uses a GPU if there is one.
        verbose: Print a line per epoch.

    Attributes:
        network_: The network, with the best weights on validation samples, or the last ones.
        inputs_: How raw values are prepared for the network.
        loss_curve_: The training loss of each epoch, of standardised targets.
        validation_loss_curve_: The validation loss of each epoch; None without validation.
        n_iter_: The number of epochs trained.
        layers_needed_: The number of highway layers that the network uses, on the held-out samples if there are any;
            computed when it is first read.
        n_outputs_: The number of targets.
        n_features_in_: The number of features.
        feature_names_in_: Their names, if `X` was a DataFrame.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> from verydeep.sklearn import HighwayRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = HighwayRegressor(depth=5, epochs=20, lr=0.02, random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.4
        True
    """

    n_outputs_: int

    def __init__(
        self,
        *,
        depth: int | None = None,
        width: int | None = None,
        activation: str | None = None,
        gate_bias: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        optimiser: Literal["sgd", "adam", "muon"] | None = None,
        weight_decay: float | None = None,
        schedule: Literal["constant", "one-cycle", "cosine"] | None = None,
        loss: Literal["squared", "huber", "absolute"] | None = None,
        metric: str | None = None,
        validation_fraction: float | None = None,
        patience: int | None = None,
        categorical: Sequence[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.depth, self.width, self.activation, self.gate_bias = depth, width, activation, gate_bias
        self.epochs, self.batch_size, self.lr, self.optimiser = epochs, batch_size, lr, optimiser
        self.weight_decay, self.schedule, self.loss, self.metric = weight_decay, schedule, loss, metric
        self.validation_fraction, self.patience, self.categorical = validation_fraction, patience, categorical
        self.random_state, self.device, self.verbose = random_state, device, verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: ANN401, N803
        """Train a new network.

        Args:
            X: An array of numbers `(n, features)`, or a DataFrame.
            y: Numbers, `(n,)` or `(n, targets)`.
            sample_weight: The weight of each sample in the loss, of training and of validation.

        Returns:
            The estimator itself.
        """
        samples = check_samples(self, X, fitted=None, least=2)
        targets = self._check(y, len(samples))
        self._learn_shape(targets)
        return self._fit(samples, self._numbers(targets), check_weights(sample_weight, len(samples)))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: ANN401, N803
        """Train one more epoch on some samples, of data that comes in parts.

        The first call decides how values and targets are prepared, from its samples, and which settings suit the data.
        Nothing is held out for validation, and the learning rate stays constant.

        Args:
            X: Samples.
            y: Their targets.
            sample_weight: The weight of each sample in the loss.

        Returns:
            The estimator itself.
        """
        first = not hasattr(self, "network_")
        samples = check_samples(self, X, fitted=None if first else self.inputs_.preparation)
        targets = self._check(y, len(samples))
        if first:
            self._learn_shape(targets)
        return self._partial_fit(samples, self._numbers(targets), check_weights(sample_weight, len(samples)))

    def predict(self, X: Any) -> np.ndarray:  # noqa: ANN401, N803
        """Predict the targets of samples in their original units: float64, in the shape of `y`.

        Args:
            X: Samples like those of `fit`.
        """
        outputs = self._outputs(X)
        values = self.inputs_.task.restore(outputs).numpy()
        return values[:, 0] if self._is_flat else values

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _check(self, y: Any, count: int) -> np.ndarray:  # noqa: ANN401
        targets = check_targets(y, count, type(self).__name__)
        return targets if targets.dtype.kind == "f" else targets.astype(np.float64)

    def _learn_shape(self, targets: np.ndarray) -> None:
        self._is_flat = targets.ndim == 1
        self.n_outputs_ = 1 if self._is_flat else targets.shape[1]

    def _numbers(self, targets: np.ndarray) -> Tensor:
        """Targets, float64, `(n, targets)`."""
        numbers = torch.from_numpy(targets.reshape(len(targets), -1).astype(np.float64))
        if numbers.shape[1] != self.n_outputs_:
            raise ValueError(f"y has {numbers.shape[1]} targets, but the regressor was fitted with {self.n_outputs_}")
        return numbers

    def _task(self, y: Tensor) -> Task:
        mean, deviation = y.mean(0), y.std(0, correction=0)
        scale = torch.where(deviation > 1e-12 * mean.abs(), deviation, 1.0)  # a constant target is learnt as such
        names = ("y",) if self._is_flat else tuple(f"y{i}" for i in range(self.n_outputs_))
        return Task("regression", names, mean=tuple(mean.tolist()), deviation=tuple(scale.tolist()))

    def _encode(self, y: Any, count: int) -> Tensor:  # noqa: ANN401
        check_is_fitted(self)
        return self.inputs_.task.standardise(self._numbers(self._check(y, count)))

    def _own_settings(self) -> dict[str, Any]:
        return {"loss": self.loss}
