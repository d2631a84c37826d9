"""Learning from a teacher (FitNets, Romero et al. 2014), in two stages.

First the student's layers up to its guided layer learn to reproduce the output of the teacher's hint layer, through a
convolution (the regressor) that makes the shapes equal and is thrown away afterwards. Then the whole student learns
from the labels and from the teacher's softened predictions:

    H(y, P_S) + w H(P_T, P_S), where both P of the second term are at temperature 3 and w falls from 4 to 1.

Temperature, weights and the size of the regressor's kernel (the difference between guided and hint maps, plus one) are
those of the FitNets authors' published code. Ours differs in four points: the regressor is linear and not maxout, its
squared error is a mean over all values, the weight falls over the whole stage, and each stage goes through the
learning-rate schedule once, with fresh momentum. The authors trained with RMSProp.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.float64 import as_float64
from verydeep.models import ConvNet, Network
from verydeep.objectives import Objective
from verydeep.training._config import DistillConfig, TrainConfig
from verydeep.training.run._run import Run
from verydeep.training.step._forward import Forward
from verydeep.training.step._loss import TrainingLoss
from verydeep.training.step._random import seeded


class Distillation(TrainingLoss):
    """The loss of both stages.

    Args:
        config: The student's configuration.
        objective: The task.
        forward: The student as a function.
        student: The student as a module, for its guided layer.
        teacher: The network whose hints and predictions are learnt.
        autocast: Makes the context in which the teacher and the guided layers compute.
    """

    def __init__(
        self,
        config: TrainConfig,
        objective: Objective,
        forward: Forward,
        student: nn.Module,
        teacher: Network,
        autocast: Callable[[], AbstractContextManager[object]],
    ) -> None:
        super().__init__(objective, forward)
        self.settings, self.student, self.teacher, self.autocast = config.distill, student, teacher, autocast
        if self.settings.hint_epochs:
            self.extra = seeded(config.seed, lambda: _make_regressor(student, teacher, config.distill))

    def __call__(self, x: Tensor, y: Tensor, epoch: int, fraction: float) -> tuple[Tensor, Tensor]:
        if epoch < self.settings.hint_epochs:
            return self._hint_loss(x)
        logits = self.forward(x)
        loss = self.objective.training_loss(logits, y) + self._weight(fraction) * self._soft_loss(x, logits)
        return loss, self.objective.sums(loss, logits, y)

    def _hint_loss(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The regressor's squared error on the hint, summed over the batch; no prediction is correct in this stage."""
        assert self.extra is not None
        assert isinstance(self.student, ConvNet)
        assert isinstance(self.teacher, ConvNet)
        self.extra.zero_grad()
        with self.autocast():
            guided = self.extra(self.student.features(x, self.settings.guided or ""))
            with torch.no_grad():
                hint = self.teacher.features(x, self.settings.hint or "")
        error = (guided.float() - hint.float()).square().flatten(1).mean(1).sum() / 2
        return error, as_float64(torch.stack([error.detach(), error.new_zeros(())]))

    def _weight(self, fraction: float) -> float:
        return self.settings.weight + (self.settings.final_weight - self.settings.weight) * fraction

    def _soft_loss(self, x: Tensor, logits: Tensor) -> Tensor:
        """The cross-entropy between the softened predictions of teacher and student, summed over the batch."""
        temperature = self.settings.temperature
        with torch.no_grad(), self.autocast():
            targets = (self.teacher(x).float() / temperature).softmax(1)
        return F.cross_entropy(logits.float() / temperature, targets, reduction="sum")


def load_teacher(config: TrainConfig, classes: int) -> Network:
    """Load the teacher of a student's configuration, with fixed weights.

    Args:
        config: The student's configuration.
        classes: How many classes the student's data has.
    """
    path = config.distill.teacher
    assert path is not None
    run = Run.load(path)
    if run.summary is not None and run.summary.status == "diverged":
        raise UserError(f"distill.teacher: {path} diverged; choose another run, or train it again at a lower rate")
    if run.summary is None:
        raise UserError(f"distill.teacher: {path} has not finished; resume it first")
    for name in ("source", "preprocess", "contrast_norm", "seed", "validation", "folds", "fold"):
        theirs, ours = (getattr(data, name) for data in (run.config.data, config.data))
        if theirs != ours:
            raise UserError(f"distill.teacher: {path} was trained with data.{name} = {theirs}, its student has {ours}")
    teacher = run.model
    if teacher.config.classes != classes:
        raise UserError(
            f"distill.teacher: {path} was trained with {teacher.config.classes} classes, but the data has {classes}"
        )
    return teacher.requires_grad_(False)


def _make_regressor(student: nn.Module, teacher: nn.Module, settings: DistillConfig) -> nn.Conv2d:
    """The convolution from the guided maps to the hint's."""
    guided, hint = _maps_shape(student, settings.guided, "guided"), _maps_shape(teacher, settings.hint, "hint")
    height, width = (ours - theirs + 1 for ours, theirs in zip(guided[1:], hint[1:], strict=True))
    if min(height, width) < 1:
        raise UserError(
            f"distill.guided: its maps {guided} are smaller than the hint's {hint}; choose an earlier layer"
        )
    return nn.Conv2d(guided[0], hint[0], (height, width))


def _maps_shape(network: nn.Module, layer: str | None, setting: str) -> tuple[int, ...]:
    """The shape of the feature maps after a layer."""
    if not isinstance(network, ConvNet):
        raise UserError(f"distill.{setting}: hints need a convolutional network, not a {type(network).__name__}")
    device = next(network.parameters()).device
    with torch.no_grad():
        shape = tuple(network.features(torch.zeros(1, *network.input_shape, device=device), layer or "").shape[1:])
    if len(shape) != 3:
        raise UserError(f"distill.{setting}: '{layer}' has an output of shape {shape}, not maps; choose a convolution")
    return shape
