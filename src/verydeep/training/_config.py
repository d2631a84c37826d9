"""The configuration of a training run: what a TOML file holds and command-line options override."""

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from verydeep.config import explains_unknown, find_config, formerly, from_dict, read_settings, renamed
from verydeep.data import DataConfig
from verydeep.errors import UserError

if TYPE_CHECKING:
    T = TypeVar("T")
    Auto = Annotated[T, None]  # None until it is chosen for the data, which happens before anything else uses it
else:

    class Auto:
        """The type of a setting that `train` chooses for the data unless it is given."""

        def __class_getitem__(cls, kind: Any) -> Any:  # noqa: ANN401 - types
            return kind | None


EvaluateTest = Literal["epoch", "end", "never"]
CHOSEN: Any = None  # the value of such a setting until then


def _require(name: str, value: object, holds: bool, what: str) -> None:
    if not holds:
        raise UserError(f"{name} must be {what}, got {value}")


@explains_unknown
@dataclass(frozen=True)
class ModelConfig:
    """The network. Settings that are not given take the named network's defaults.

    Attributes:
        name: Name of the network; see `verydeep models`. By default, highway-mlp, or highway-conv for your own images.
        depth: Number of hidden layers of the -mlp and -conv networks; 0 is a linear model. By default, 50, or fewer for
            small tables and for images. Of recurrent-highway, the number of layers per time step.
        width: Number of units per layer of a fully connected network, or of feature maps of the first stage of a -conv
            network; by default, the named network's own.
        activation: Activation function of the hidden layers, such as tanh, relu, lwta or maxout; by default, the named
            network's own.
        gate_bias: Initial bias of the transform gates; by default, one that suits the depth.
        carry: Carry gate: coupled (1 - transform gate) or independent (own weights); by default, coupled.
        blocks: Number of blocks per stage of resnet-110 and highway-110; by default, the named network's own.
        dropout: Multiplier of the dropout rates of a convolutional network; 0 switches dropout off.
        classifier_std: Standard deviation of the initial weights of a convolutional network's classifier; by
            default, the named network's own.
        init: Initial weights of the hidden layers: auto, glorot_normal, glorot_uniform, he_normal, he_uniform,
            orthogonal, sparse, laplace, scaled_normal, or the standard deviation of a normal distribution such as
            "0.05"; by default, He's or Glorot's, as the activation needs.

    Example:
        >>> from verydeep.training import ModelConfig
        >>> ModelConfig("highway-mlp", depth=20).overrides()
        {'depth': 20}
    """

    name: Auto[str] = CHOSEN
    depth: int | None = None
    width: int | None = None
    activation: str | None = None
    gate_bias: float | None = None
    carry: Literal["coupled", "independent"] | None = None
    blocks: int | None = None
    dropout: float | None = None
    classifier_std: float | None = None
    init: str | None = None

    def overrides(self) -> dict[str, Any]:
        """The settings that were given, for `create_model`."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "name"}
        return {name: value for name, value in given.items() if value is not None}


@explains_unknown
@dataclass(frozen=True)
class OptimConfig:
    """How weights are updated.

    Attributes:
        name: Optimiser: sgd (as in the paper), adam or muon; the last two with decoupled weight decay. By default, sgd.
        lr: Learning rate before the schedule; by default, one that suits the data and the optimiser.
        momentum: Momentum of SGD and Muon.
        nesterov: Use Nesterov momentum.
        weight_decay: Weight decay of weights. By default, 0 for known datasets, and what suits the size of your own
            data.
        bias_lr: Multiplier of the learning rate for biases (the paper's convolutional networks use 2).
        bias_decay: Multiplier of the weight decay for biases; by default, they have none.
        classifier_decay: Multiplier of the weight decay for the classifier (the authors use 10).
        classifier_lr: Multiplier of the learning rate for the output layer, weights and biases, also if it is a
            convolution (Network in Network uses 0.1).
        clip: Clip the gradient norm to this value; by default, gradients are not clipped.

    Example:
        >>> from verydeep.training import OptimConfig
        >>> OptimConfig("muon", lr=0.015, weight_decay=0.1).momentum
        0.9
    """

    name: Auto[Literal["sgd", "adam", "muon"]] = CHOSEN
    lr: Auto[float] = CHOSEN
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: Auto[float] = CHOSEN
    bias_lr: float = 1.0
    bias_decay: float = 0.0
    classifier_decay: float = 1.0
    classifier_lr: float = 1.0
    clip: float | None = None

    def __post_init__(self) -> None:
        _require("optim.lr", self.lr, self.lr is None or 0 < self.lr < math.inf, "positive and finite")
        _require("optim.momentum", self.momentum, 0 <= self.momentum < 1, "at least 0 and less than 1")
        _require(
            "optim.weight_decay", self.weight_decay, self.weight_decay is None or self.weight_decay >= 0, "0 or more"
        )
        for name in ("bias_lr", "bias_decay", "classifier_decay", "classifier_lr"):
            value = getattr(self, name)
            _require(f"optim.{name}", value, 0 <= value < math.inf, "0 or more")
        _require("optim.clip", self.clip, self.clip is None or self.clip > 0, "more than 0")
        if self.nesterov and self.momentum == 0:
            raise UserError("optim.nesterov needs optim.momentum above 0")


@explains_unknown
@dataclass(frozen=True)
class ScheduleConfig:
    """How the learning rate changes.

    Attributes:
        name: The schedule: `constant`; `exponential` (x factor after every epoch); `multistep` (x factor after each
            milestone); `one-cycle` (linear warm-up, then linear decay to 0); `cosine` (linear warm-up, then cosine
            decay to 0). By default, constant for known datasets and one-cycle for your own data.
        factor: Factor of exponential and multistep.
        milestones: Epochs after which multistep multiplies the rate by the factor.
        warmup: Fraction of training spent on linear warm-up (one-cycle and cosine).
        first_epoch: Factor on the rate in the first epoch of constant, exponential and multistep.

    Example:
        >>> from verydeep.training import ScheduleConfig
        >>> ScheduleConfig("multistep", factor=0.1, milestones=(100, 150)).milestones
        (100, 150)
    """

    name: Auto[Literal["constant", "exponential", "multistep", "one-cycle", "cosine"]] = CHOSEN
    factor: float = 0.1
    milestones: tuple[int, ...] = ()
    warmup: float = 0.0
    first_epoch: float = 1.0

    def __post_init__(self) -> None:
        _require("schedule.first_epoch", self.first_epoch, 0 < self.first_epoch <= 1, "more than 0 and at most 1")
        _require("schedule.factor", self.factor, 0 < self.factor <= 1, "more than 0 and at most 1")
        _require("schedule.warmup", self.warmup, 0 <= self.warmup < 1, "at least 0 and less than 1")
        ascending = tuple(sorted(set(self.milestones))) == self.milestones and min(self.milestones, default=1) > 0
        _require("schedule.milestones", self.milestones, ascending, "ascending numbers of epochs")
        if self.name == "multistep" and not self.milestones:
            raise UserError("schedule.milestones: a multistep schedule needs at least one milestone")


@explains_unknown
@dataclass(frozen=True)
class DistillConfig:
    """Knowledge distillation from a trained network, as in FitNets; without a teacher, only labels are used.

    Attributes:
        teacher: The folder of a finished run on the same data; by default, there is no teacher.
        hint_epochs: The first n epochs train the layers up to `guided` to reproduce the output of the teacher's `hint`
            layer.
        hint: A layer of the teacher, by its name in `verydeep models NAME`: conv2 is a convolution with its activation,
            pool2 the pooling after it.
        guided: A layer of the student.
        temperature: Temperature of the softmax of teacher and student; higher is softer.
        weight: Initial weight of the distillation loss relative to the label loss.
        final_weight: Final weight of the distillation loss.

    Example:
        >>> from verydeep.training import DistillConfig
        >>> DistillConfig("runs/teacher", hint_epochs=10, hint="conv2", guided="conv6").temperature
        3.0
    """

    teacher: str | None = None
    hint_epochs: int = 0
    hint: str | None = None
    guided: str | None = None
    temperature: float = 3.0
    weight: float = 4.0
    final_weight: float = 1.0

    def __post_init__(self) -> None:
        _require("distill.hint_epochs", self.hint_epochs, self.hint_epochs >= 0, "0 or more")
        _require("distill.temperature", self.temperature, self.temperature > 0, "more than 0")
        _require("distill.weight", self.weight, self.weight >= 0, "0 or more")
        _require("distill.final_weight", self.final_weight, self.final_weight >= 0, "0 or more")
        if self.hint_epochs and (self.hint is None or self.guided is None):
            raise UserError(
                "distill.hint_epochs needs distill.hint and distill.guided, the layers of teacher and student"
            )


@explains_unknown
@dataclass(frozen=True)
class CompanionConfig:
    """Companion losses on hidden layers, as in deeply supervised nets; without layers, there are none.

    A linear classifier of its own predicts the target from each of these layers. Its loss, of the same kind as the
    network's, is added to that of the network. The classifiers are discarded after training.

    Attributes:
        hidden_layers: Their names: those in `verydeep models NAME` of a convolutional network, where conv1 is the
            convolution before its activation and activation1 after it; stem, block1, block2, ... of resnet-110 and
            highway-110; layer1, layer2, ... of an -mlp network.
        weights: The weight of each companion loss, or one for all; by default, 1.
        until: The number of epochs after which the companion losses are switched off; by default, never.
        head_lr: Multiplier of the learning rate for the companions' classifiers. Large layers need a small one: deeply
            supervised nets have 0.001 on 196,608 values.

    Example:
        >>> from verydeep.training import CompanionConfig
        >>> CompanionConfig(("layer10", "layer20"), weights=(0.3,), until=5).weight_of
        {'layer10': 0.3, 'layer20': 0.3}
    """

    hidden_layers: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    until: int | None = None
    head_lr: float = 1.0

    def __post_init__(self) -> None:
        if len(set(self.hidden_layers)) < len(self.hidden_layers):
            raise UserError("companion.hidden_layers names a layer twice")
        if len(self.weights) not in (0, 1, len(self.hidden_layers)):
            raise UserError(
                f"companion.weights must have one weight, or one for each of the {len(self.hidden_layers)} layers; "
                f"got {len(self.weights)}"
            )
        weights = all(0 <= weight < math.inf for weight in self.weights)
        _require("companion.weights", list(self.weights), weights, "0 or more")
        _require("companion.until", self.until, self.until is None or self.until >= 1, "at least 1")
        _require("companion.head_lr", self.head_lr, 0 <= self.head_lr < math.inf, "0 or more")
        if not self.hidden_layers and (self.weights or self.until is not None or self.head_lr != 1):
            raise UserError("companion needs companion.hidden_layers, the hidden layers with a loss of their own")

    @property
    def weight_of(self) -> dict[str, float]:
        """The weight of each layer's loss."""
        weights = self.weights or (1.0,)
        return dict(
            zip(self.hidden_layers, weights * len(self.hidden_layers) if len(weights) == 1 else weights, strict=True)
        )


def _as_weights(weights: object) -> tuple[str, ...]:
    """Class weights as they are stored: `balanced`, or `class=weight` for each class."""
    if isinstance(weights, Mapping):
        return tuple(f"{name}={weight}" for name, weight in weights.items())
    return (weights,) if isinstance(weights, str) else tuple(weights)  # type: ignore[arg-type]


_PARTS = {
    "data": DataConfig,
    "model": ModelConfig,
    "optim": OptimConfig,
    "schedule": ScheduleConfig,
    "distill": DistillConfig,
    "companion": CompanionConfig,
}


@explains_unknown
@dataclass(frozen=True)
class TrainConfig:
    """A training run.

    Attributes:
        data: Which data, and how it is prepared.
        model: The network.
        optim: How weights are updated.
        schedule: How the learning rate changes.
        distill: Knowledge distillation from a trained network.
        companion: Companion losses on hidden layers.
        epochs: Number of passes over the training set; by default, 10 for known datasets, and as many as your own data
            needs, given its size.
        batch_size: Samples per update, over all processes together; by default, 100, or fewer for small data.
        seed: Determines initial weights, the order of samples, augmentation and dropout.
        init: Start from the weights of this run or .safetensors file where names and shapes match; a classifier for
            other classes starts fresh.
        loss: The loss of a regression: `squared`, `huber` (squared for errors up to one standard deviation of the
            target, absolute beyond) or `absolute`, by default squared. The loss of a classification: `cross-entropy`
            or `squared-hinge`, by default the former.
        class_weight: Weights of the classes in the training loss. `balanced` weights each by the inverse of its
            frequency, so that rare ones count as much as frequent ones; a list such as spam=3,ham=1 gives the weights.
            By default, all are 1.
        metric: The metric on validation data by which the best epoch is selected and `patience` counts: `accuracy`,
            `loss`, `balanced_accuracy`, `f1`, `roc_auc`, `average_precision`, `log_loss`, `r2`, `rmse` or `mae`. By
            default, the accuracy of known datasets and the loss of your own data.
        label_smoothing: Fraction of the training target that is spread over all classes; the losses measured on the
            training, validation and test sets are not smoothed.
        ema_half_life: Evaluate and save an exponential moving average of the weights with this half-life in epochs;
            by default, the weights themselves.
        evaluate_train: Also evaluate the full training set after every epoch.
        evaluate_test: When the test set is evaluated: after every `epoch`, at the `end` with the saved weights, or
            `never`. It is never used for selection. By default, after every epoch of known datasets, and at the end for
            your own data.
        patience: Stop when the metric on validation data has not improved for this many epochs; 0 trains to the end. By
            default, training on a known dataset goes on to the end, and on your own data stops early.
        divergence_factor: Stop as diverged when the training loss exceeds this multiple of the loss of a blind guess,
            which is log(classes) for classification.
        checkpoint_every: Seconds between checkpoints within an epoch. After an epoch, one is written if the last is
            older than that or than 2 seconds, and always when training ends or is stopped.
        snapshots: How many times the weights are kept during training, after epochs that are spread evenly; the initial
            weights are kept as well. 0 keeps none. See `Run.snapshots`.
        device: The device, such as `cpu` or `cuda`; `auto` uses a GPU if there is one.
        threads: CPU threads per process; by default, as many as torch uses, but not more than there are free cores, and
            one for small networks on your own data. A run keeps the number that it was started with.
        precision: Precision of computation; `bfloat16` multiplies matrices in bfloat16: those of fully connected hidden
            layers in kernels, if the processor has AVX512-BF16, all others in torch's autocast.
        compile: Use torch.compile.
        checkpoint_activations: Recompute activations in the backward pass to save memory.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.training import ModelConfig, OptimConfig, TrainConfig
        >>> config = TrainConfig(DataConfig("digits"), ModelConfig(depth=10), OptimConfig(lr=0.1), epochs=5)
        >>> config.optim.lr
        0.1
    """

    data: DataConfig = field(default_factory=lambda: DataConfig("mnist"))
    model: ModelConfig = ModelConfig()
    optim: OptimConfig = OptimConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    distill: DistillConfig = DistillConfig()
    companion: CompanionConfig = CompanionConfig()
    epochs: Auto[int] = CHOSEN
    batch_size: Auto[int] = CHOSEN
    seed: int = 0
    init: str | None = None
    loss: Literal["squared", "huber", "absolute", "cross-entropy", "squared-hinge"] | None = None
    class_weight: tuple[str, ...] = ()
    metric: Auto[str] = CHOSEN
    label_smoothing: float = 0.0
    ema_half_life: float | None = renamed("average", None)
    evaluate_train: bool = False
    evaluate_test: Auto[EvaluateTest] = formerly({True: "epoch", False: "never"}, CHOSEN)  # noqa: RUF009
    patience: int | None = None
    divergence_factor: float = renamed("explosion", 100.0)
    checkpoint_every: float = 60.0
    snapshots: int = 0
    device: str = "auto"
    threads: int | None = None
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    checkpoint_activations: bool = False

    def __post_init__(self) -> None:
        for name, kind in _PARTS.items():
            if not isinstance(value := getattr(self, name), kind):
                raise UserError(f"{name} must be a {kind.__name__}, such as {kind.__name__}(...); got {value!r}")
        if isinstance(self.init, os.PathLike):
            object.__setattr__(self, "init", os.fspath(self.init))
        if isinstance(self.evaluate_test, bool):  # before 0.4.0
            object.__setattr__(self, "evaluate_test", "epoch" if self.evaluate_test else "never")
        object.__setattr__(self, "class_weight", _as_weights(self.class_weight))
        _require("epochs", self.epochs, self.epochs is None or self.epochs >= 1, "at least 1")
        _require("batch_size", self.batch_size, self.batch_size is None or self.batch_size >= 1, "at least 1")
        _require("seed", self.seed, 0 <= self.seed < 2**63, "at least 0 and less than 2 ** 63")
        _require("label_smoothing", self.label_smoothing, 0 <= self.label_smoothing < 1, "at least 0 and less than 1")
        half_life = self.ema_half_life
        _require("ema_half_life", half_life, half_life is None or 0 < half_life < math.inf, "more than 0 epochs")
        _require("divergence_factor", self.divergence_factor, self.divergence_factor > 1, "more than 1")
        _require("threads", self.threads, self.threads is None or 1 <= self.threads <= 1024, "from 1 to 1024")
        _require("patience", self.patience, self.patience is None or self.patience >= 0, "0 or more")
        _require("checkpoint_every", self.checkpoint_every, self.checkpoint_every >= 0, "0 or more")
        _require("snapshots", self.snapshots, self.snapshots >= 0, "0 or more")
        if self.companion.hidden_layers and (self.compile or self.distill.teacher is not None):
            other = "compile = true" if self.compile else "distill.teacher"
            raise UserError(f"companion.hidden_layers cannot be used with {other}; leave one out")
        hints = self.distill.hint_epochs
        fewer = self.epochs is None or hints < self.epochs
        _require("distill.hint_epochs", hints, fewer, f"fewer than all {self.epochs} epochs")
        if hints and self.patience:
            raise UserError(
                "patience cannot be used with distill.hint_epochs: accuracy does not improve during the hint stage"
            )


def read_config(path: str | Path) -> TrainConfig:
    """Read a training configuration.

    Args:
        path: A TOML file, or the name of a configuration that comes with verydeep, such as `highway50-mnist`. A file
            may take settings from another one: `extends = "other.toml"`.

    Returns:
        The configuration; settings under a former name are accepted with a FutureWarning. Settings that the file does
        not give are filled in for the paper's datasets; for others, `train` chooses them for the data.

    Raises:
        UserError: The file cannot be read, or a setting is unknown or has a value that makes no sense.

    Example:
        >>> from verydeep.training import read_config
        >>> config = read_config("highway50-mnist")
        >>> config.model.depth, config.optim.lr
        (50, 0.2)
    """
    file = find_config(path)
    values = read_settings(file)
    if isinstance(values.get("search"), dict):
        raise UserError(f"{path} has a [search] table: it is for a search (verydeep search), not a single training")
    try:
        hint = partial(warnings.warn, category=FutureWarning, stacklevel=3)
        config = from_dict(TrainConfig, values, str(file), hint)
    except UserError as error:
        if str(error).startswith(str(file)):
            raise
        raise UserError(f"{file}: {error}") from error
    from verydeep.training._defaults import is_paper_dataset, paper_settings

    return paper_settings(config) if is_paper_dataset(config.data) else config
