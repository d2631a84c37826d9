"""Training without files, for callers that keep the network themselves."""

from dataclasses import dataclass

from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.models import Network
from verydeep.objectives import Metric, Objective
from verydeep.training._config import TrainConfig
from verydeep.training._defaults import choose_settings
from verydeep.training._interrupt import Interrupt
from verydeep.training._objective import OwnMetrics
from verydeep.training._train import make_model, private_settings
from verydeep.training._trainer import Trainer
from verydeep.training.progress._progress import TrainingProgress
from verydeep.training.run._memory_run import MemoryRun, TrainingState
from verydeep.training.run._metrics import EpochMetrics
from verydeep.training.run._state import Status
from verydeep.training.step._process_group import ProcessGroup, find_device


@dataclass(frozen=True)
class TrainedNetwork:
    """What `train_in_memory` returns.

    Attributes:
        model: The network on the CPU, in evaluation mode: with the best weights on validation data, or the last ones.
        config: The configuration, with every setting that was chosen for the data.
        metrics: The metrics of every epoch.
        status: How training ended.
        state: Where it stopped, to continue from.
    """

    model: Network
    config: TrainConfig
    metrics: tuple[EpochMetrics, ...]
    status: Status
    state: TrainingState


def train_in_memory(
    config: TrainConfig,
    dataset: Dataset,
    *,
    model: Network | None = None,
    start: TrainingState | None = None,
    objective: Objective | None = None,
    metrics: tuple[Metric, ...] = (),
    progress: TrainingProgress | None = None,
) -> TrainedNetwork:
    """Train a network as `train` does, in this process alone and without a folder; Ctrl-C ends it with nothing saved.

    Args:
        config: The training settings; those that are not given are chosen for the data.
        dataset: The data, in place of `config.data`.
        model: The network to train, which is changed; by default, a new one.
        start: The state of the training that `model` is from; `config.epochs` is then the new total.
        objective: The objective, in place of that of the data's task.
        metrics: Further metrics.
        progress: What is shown; by default, only warnings.
    """
    device = find_device(config.device, 0)
    with private_settings(config.threads, device):
        config = choose_settings(config, dataset, user_supplied=True)
        model = make_model(config, dataset) if model is None else model
        run, group = MemoryRun(config, start), ProcessGroup(0, 1, device)
        own = OwnMetrics(objective, metrics)
        trainer = Trainer(run, model.to(device), dataset, group, progress or TrainingProgress(), own)
        try:
            status = trainer.fit(Interrupt())
        finally:
            trainer.progress.close()
        if run.weights is not None:
            model.load_state_dict(run.weights)
        elif status == "diverged":
            raise UserError(f"training diverged in its first epoch; use a lower learning rate than {config.optim.lr}")
        return TrainedNetwork(model.cpu().eval(), config, tuple(run.metrics), status, run.state)
