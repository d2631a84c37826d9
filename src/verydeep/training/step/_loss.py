"""What a training step minimises."""

from torch import Tensor, nn

from verydeep.data import Task
from verydeep.errors import UserError
from verydeep.models import MLP
from verydeep.objectives import Classification, Objective
from verydeep.training._config import TrainConfig
from verydeep.training.step._forward import Forward, autocast, with_checked_shape
from verydeep.training.step._process_group import ProcessGroup


class TrainingLoss:
    """The loss of the objective.

    Args:
        objective: The task.
        forward: The network.
    """

    extra: nn.Module | None = None  # trained along with the network and discarded afterwards

    def __init__(self, objective: Objective, forward: Forward) -> None:
        self.objective, self.forward = objective, forward

    def __call__(self, x: Tensor, y: Tensor, epoch: int, fraction: float) -> tuple[Tensor, Tensor]:
        """The loss summed over a batch, and the sums of the objective.

        Args:
            x: Samples.
            y: Their targets.
            epoch: Epochs completed.
            fraction: The fraction of the current stage that is done.
        """
        outputs = self.forward(x)
        loss = self.objective.training_loss(outputs, y)
        return loss, self.objective.sums(loss, outputs, y)

    def backward(self, x: Tensor, y: Tensor, scale: float, epoch: int, fraction: float) -> tuple[Tensor, Tensor]:
        """Backpropagate `scale` times the loss; otherwise like a call."""
        loss, sums = self(x, y, epoch, fraction)
        loss.backward(loss.new_tensor(scale))
        return loss.detach(), sums

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors that a checkpoint must hold."""
        state = {} if self.extra is None else self.extra.state_dict()
        return {f"extra.{name}": value for name, value in state.items()}


class FusedLoss(TrainingLoss):
    """The loss of a fully connected network whose kernels compute a whole step: the same bits in less time."""

    def __init__(self, objective: Objective, model: MLP) -> None:
        super().__init__(objective, model)
        self.model = model
        self.is_plain = isinstance(objective, Classification) and objective.is_plain

    def backward(self, x: Tensor, y: Tensor, scale: float, _epoch: int, _fraction: float) -> tuple[Tensor, Tensor]:
        if self.is_plain:
            loss, outputs = self.model.backward_cross_entropy(x, y, scale)
        else:
            loss, outputs = self.model.backward_loss(x, lambda each: self.objective.training_loss(each, y), scale)
        return loss, self.objective.sums(loss, outputs, y)


def make_loss(
    config: TrainConfig, objective: Objective, model: nn.Module, forward: Forward, task: Task, group: ProcessGroup
) -> TrainingLoss:
    """Choose the loss: distillation if there is a teacher, companion losses, the fused step if the network has one.

    Args:
        config: The run's configuration.
        objective: The task.
        model: The network.
        forward: The network as `make_forward` returns it.
        task: What is predicted.
        group: The processes that train together.
    """
    checked = with_checked_shape(forward, task)
    if config.companion.hidden_layers:
        from verydeep.training.step._companion import CompanionLoss, check_companions

        network = check_companions(config, model, group.size)
        alone = _plain_loss(objective, model, forward, checked, task)
        loss: TrainingLoss = CompanionLoss(config, objective, network, alone, lambda: autocast(config, group.device))
        return _on_device(loss, group)
    if config.distill.teacher is None:
        if config.distill.hint_epochs:
            raise UserError("distill.hint_epochs needs distill.teacher, the folder of a finished run")
        return _plain_loss(objective, model, forward, checked, task)
    if task.kind != "classification":
        raise UserError(f"a teacher is for classification, but this is a {task.kind} task; leave distill.teacher out")
    if group.size > 1:
        raise UserError("a teacher needs a single process; start the training without torchrun")
    from verydeep.training.step._distillation import Distillation, load_teacher

    teacher = load_teacher(config, task.outputs).to(group.device)
    loss = Distillation(config, objective, checked, model, teacher, lambda: autocast(config, group.device))
    return _on_device(loss, group)


def _plain_loss(objective: Objective, model: nn.Module, forward: Forward, checked: Forward, task: Task) -> TrainingLoss:
    if type(model) is MLP and forward is model and model.classifier.out_features >= task.outputs:
        return FusedLoss(objective, model)
    return TrainingLoss(objective, checked)


def _on_device(loss: TrainingLoss, group: ProcessGroup) -> TrainingLoss:
    if loss.extra is not None:
        loss.extra.to(group.device)
    return loss
