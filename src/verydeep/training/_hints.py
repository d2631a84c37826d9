"""Learning from a teacher (FitNets, Romero et al. 2014), in two stages.

First the student's layers up to its guided layer learn to give what the teacher's hint layer gives, through a
convolution (the regressor) that makes the shapes equal and is thrown away afterwards. Then the whole student learns
from the labels and from the teacher's softened answers:

    H(y, P_S) + w H(P_T, P_S), both P of the second term at temperature 3; w falls from 4 to 1.

Temperature, weights and the regressor's kernel (by how much the guided maps exceed the hint's, plus one) are those of
the FitNets authors' published code. Ours: the regressor is linear and not maxout, its squared error is a mean over all
values, the weight falls over the whole stage, and each stage goes through the learning-rate schedule once, with fresh
momentum; they trained by RMSProp.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.models import ConvNet, Network
from verydeep.training._checkpoint import Position
from verydeep.training._config import DistillConfig, TrainConfig
from verydeep.training._evaluate import losses
from verydeep.training._objective import Forward, Objective, Precision, seeded


class Distillation(Objective):
    """The objective of both stages.

    Args:
        config: The run's.
        logits: The student.
        student: Its module, for its guided layer.
        teacher: Whose hints and answers are learnt.
        precision: The context the teacher and the guided layers compute in.
    """

    def __init__(
        self, config: TrainConfig, logits: Forward, student: nn.Module, teacher: Network, precision: Precision
    ) -> None:
        super().__init__(config, logits)
        self.student, self.teacher, self.precision = student, teacher, precision
        if config.distill.hint_epochs:
            self.extra = seeded(config.seed, lambda: _regressor(student, teacher, config.distill))

    def __call__(self, x: Tensor, y: Tensor, position: Position, progress: float) -> tuple[Tensor, Tensor]:
        if position.epoch < self.config.distill.hint_epochs:
            return self._hint(x)
        logits = self.logits(x)
        loss, right = losses(logits, y, self.config.label_smoothing)
        return loss + self._weight(progress) * self._soft(x, logits), right

    def _hint(self, x: Tensor) -> tuple[Tensor, Tensor]:
        assert self.extra is not None
        assert isinstance(self.student, ConvNet)
        assert isinstance(self.teacher, ConvNet)
        self.extra.zero_grad()
        settings = self.config.distill
        with self.precision():
            found = self.extra(self.student.features(x, settings.guided or ""))
            with torch.no_grad():
                wanted = self.teacher.features(x, settings.hint or "")
        error = (found.float() - wanted.float()).square().flatten(1).mean(1).sum() / 2
        return error, torch.zeros_like(error)

    def _weight(self, progress: float) -> float:
        settings = self.config.distill
        return settings.weight + (settings.final_weight - settings.weight) * progress

    def _soft(self, x: Tensor, logits: Tensor) -> Tensor:
        """The cross-entropy of the teacher's softened answers and the student's, summed over the batch."""
        temperature = self.config.distill.temperature
        with torch.no_grad(), self.precision():
            answers = (self.teacher(x).float() / temperature).softmax(1)
        return F.cross_entropy(logits.float() / temperature, answers, reduction="sum")


def _maps(network: nn.Module, layer: str | None, which: str) -> tuple[int, ...]:
    """The shape of the maps after a layer."""
    if not isinstance(network, ConvNet):
        raise UserError(f"distill.{which}: hints are for convolutional networks, not for a {type(network).__name__}")
    device = next(network.parameters()).device
    with torch.no_grad():
        shape = tuple(network.features(torch.zeros(1, *network.input_shape, device=device), layer or "").shape[1:])
    if len(shape) != 3:
        raise UserError(f"distill.{which}: '{layer}' gives no feature maps but {shape}; choose a convolution")
    return shape


def _regressor(student: nn.Module, teacher: nn.Module, settings: DistillConfig) -> nn.Conv2d:
    """The convolution from the guided maps to the hint's."""
    guided, hint = _maps(student, settings.guided, "guided"), _maps(teacher, settings.hint, "hint")
    height, width = (ours - theirs + 1 for ours, theirs in zip(guided[1:], hint[1:], strict=True))
    if min(height, width) < 1:
        raise UserError(
            f"distill.guided: its maps {guided} are smaller than the hint's {hint}; choose an earlier layer"
        )
    return nn.Conv2d(guided[0], hint[0], (height, width))
