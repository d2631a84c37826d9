"""`HighwayClassifier`: classes or labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.class_weight import compute_sample_weight  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets, type_of_target  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, column_or_1d  # type: ignore[import-untyped]
from torch import Tensor

from verydeep.data import Task
from verydeep.objectives import MultiLabel
from verydeep.sklearn._estimator import HighwayEstimator
from verydeep.sklearn._samples import check_samples, check_targets, check_weights


class HighwayClassifier(ClassifierMixin, HighwayEstimator):  # type: ignore[misc]
    """A highway network that predicts classes, or any number of labels, as a scikit-learn estimator.

    Settings that are None are chosen for the data, as `verydeep train` does. Arrays are standardised. In a DataFrame of
    pandas or polars, gaps are filled and categories one-hot encoded. Training is deterministic for a given
    `random_state`, and leaves no files.

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
        label_smoothing: Fraction of the training target that is spread over all classes.
        class_weight: `"balanced"`, so that rare classes count as much as frequent ones, or the weight of each class as
            a dictionary. It multiplies `sample_weight`. For labels, only `"balanced"`.
        metric: The metric on validation samples by which the best epoch is selected and `patience` counts: `loss`,
            `accuracy`, `balanced_accuracy`, `f1`, `roc_auc`, `average_precision` or `log_loss`.
        validation_fraction: The fraction, or number, of samples held out for validation; 0 holds out none. By default,
            15 % if there are at least 20 samples.
        patience: Stop when the metric has not improved for this many epochs; 0 trains to the end.
        categorical: Columns of a DataFrame to treat as categories although they look like numbers.
        random_state: Seed, or NumPy's random state, of initial weights, the order of samples and the held-out ones.
        device: The device to train on, such as `cpu` or `cuda`; `auto` uses a GPU if there is one.
        verbose: Print a line per epoch.

    Attributes:
        classes_: The classes, in the type of `y`; the numbers of the labels if `y` has several columns.
        network_: The network, with the best weights on validation samples, or the last ones.
        inputs_: How raw values are prepared for the network.
        loss_curve_: The training loss of each epoch.
        validation_loss_curve_: The validation loss of each epoch; None without validation.
        n_iter_: The number of epochs trained.
        layers_needed_: The number of highway layers that the network uses, on the held-out samples if there are any;
            computed when it is first read.
        n_features_in_: The number of features.
        feature_names_in_: Their names, if `X` was a DataFrame.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from verydeep.sklearn import HighwayClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = HighwayClassifier(depth=10, epochs=50, lr=0.1, random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.9
        True
        >>> model.predict_proba(X[:2]).shape
        (2, 3)
    """

    classes_: np.ndarray

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
        label_smoothing: float | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
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
        self.weight_decay, self.schedule, self.label_smoothing = weight_decay, schedule, label_smoothing
        self.class_weight, self.metric = class_weight, metric
        self.validation_fraction, self.patience, self.categorical = validation_fraction, patience, categorical
        self.random_state, self.device, self.verbose = random_state, device, verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: ANN401, N803
        """Train a new network.

        Args:
            X: An array of numbers `(n, features)`, or a DataFrame.
            y: The class of each sample, in any type; or labels 0 and 1, `(n, labels)`.
            sample_weight: The weight of each sample in the loss, of training and of validation.

        Returns:
            The estimator itself.
        """
        samples = check_samples(self, X, fitted=None, least=2)
        targets = self._check(y, len(samples))
        weights = check_weights(sample_weight, len(samples))
        if self._learn_classes(targets, None) and self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, targets)
            weights = by_class if weights is None else weights * by_class
        _require_two_classes(targets if weights is None else targets[weights > 0])
        return self._fit(samples, self._numbers(targets), weights)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:  # noqa: ANN401, N803
        """Train one more epoch on some samples, of data that comes in parts.

        The first call decides how values are prepared, from its samples, and which settings suit the data. Nothing is
        held out for validation, and the learning rate stays constant.

        Args:
            X: Samples.
            y: Their classes or labels.
            classes: All classes that will occur; needed at the first call, unless `y` are labels.
            sample_weight: The weight of each sample in the loss.

        Returns:
            The estimator itself.
        """
        first = not hasattr(self, "network_")
        samples = check_samples(self, X, fitted=None if first else self.inputs_.preparation)
        targets = self._check(y, len(samples))
        if self.class_weight is not None:
            raise ValueError("class_weight cannot be used with partial_fit; pass sample_weight instead")
        if first:
            if classes is None and targets.ndim == 1:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            self._learn_classes(targets, classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes are {np.unique(classes)}, but were {self.classes_} before")
        return self._partial_fit(samples, self._numbers(targets), check_weights(sample_weight, len(samples)))

    def predict(self, X: Any) -> np.ndarray:  # noqa: ANN401, N803
        """Predict the class of each sample, in the type of the classes; or labels, `(n, labels)`.

        Args:
            X: Samples like those of `fit`.
        """
        outputs = self._outputs(X)
        if self._is_multilabel:
            return MultiLabel().answer(outputs).numpy().astype(self._label_type)
        predicted: np.ndarray = self.classes_[outputs.argmax(1).numpy()]
        return predicted

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: ANN401, N803
        """The probability of each class, in the order of `classes_`, or of each label; float64, `(n, classes)`.

        Args:
            X: Samples like those of `fit`.
        """
        outputs = self._outputs(X)
        return (outputs.sigmoid() if self._is_multilabel else outputs.softmax(1)).numpy()

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @property
    def _is_multilabel(self) -> bool:
        return self._label_type is not None

    def _check(self, y: Any, count: int) -> np.ndarray:  # noqa: ANN401
        """Targets as an array: classes `(n,)`, or labels `(n, labels)`."""
        targets = check_targets(y, count, type(self).__name__)
        check_classification_targets(targets)
        if targets.ndim == 2 and targets.shape[1] == 1:
            return column_or_1d(targets, warn=True)  # type: ignore[no-any-return]
        if targets.ndim == 2 and not type_of_target(targets).startswith("multilabel"):
            raise ValueError(
                "y has several columns, which must be labels 0 and 1; for classes, fit a classifier per column"
            )
        return targets

    def _learn_classes(self, targets: np.ndarray, classes: Any) -> bool:  # noqa: ANN401
        """Remember the classes or labels; returns whether they are classes."""
        self._label_type = targets.dtype if targets.ndim == 2 else None
        if targets.ndim == 2:
            self.classes_ = np.arange(targets.shape[1])
            return False
        self.classes_ = np.unique(targets if classes is None else classes)
        return True

    def _numbers(self, targets: np.ndarray) -> Tensor:
        """Class numbers, int64, or labels, float64, `(n, labels)`."""
        if (targets.ndim == 2) != self._is_multilabel or (targets.ndim == 2 and targets.shape[1] != len(self.classes_)):
            raise ValueError(f"y has shape {targets.shape}, but the classifier was fitted for {self.classes_}")
        if targets.ndim == 2:
            return torch.from_numpy(targets.astype(np.float64))
        unknown = np.setdiff1d(targets, self.classes_)
        if len(unknown):
            raise ValueError(f"y has the classes {unknown}, which are not among {self.classes_}")
        return torch.from_numpy(np.searchsorted(self.classes_, targets))

    def _task(self, y: Tensor) -> Task:
        return Task("classification" if y.dim() == 1 else "multilabel", tuple(map(str, self.classes_)))

    def _encode(self, y: Any, count: int) -> Tensor:  # noqa: ANN401
        check_is_fitted(self)
        numbers = self._numbers(self._check(y, count))
        return numbers.float() if self._is_multilabel else numbers

    def _own_settings(self) -> dict[str, Any]:
        if not self._is_multilabel:
            return {"label_smoothing": self.label_smoothing}  # class weights are among the weights of samples
        if self.class_weight not in (None, "balanced"):
            raise ValueError("class_weight of labels must be 'balanced' or None")
        balanced = ["balanced"] if self.class_weight is not None else None
        return {"label_smoothing": self.label_smoothing, "class_weight": balanced}


def _require_two_classes(targets: np.ndarray) -> None:
    if targets.ndim == 1 and len(found := np.unique(targets)) < 2:
        raise ValueError(
            f"a classifier needs samples of at least two classes, but there is only one class, {found[0]!r}"
        )
