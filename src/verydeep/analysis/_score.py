"""Loss and right answers, summed over batches."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from verydeep.analysis._data import Data, Progress, Subject, device, go_through
from verydeep.analysis._results import Score
from verydeep.analysis._view import Closed, Pass, twin
from verydeep.errors import UserError

_BATCH = 500


def losses(logits: Tensor, y: Tensor) -> Tensor:
    """Sum of the cross-entropies, and how many samples are classified wrong: float64, `(2,)`."""
    loss = F.cross_entropy(logits.float(), y, reduction="sum")
    return torch.stack([loss.double(), (logits.argmax(1) != y).sum().double()])


def score(subject: Subject, closed: Closed = frozenset(), progress: Progress | None = None) -> tuple[Score, int]:
    """How well a network does with some layers closed, and on how many samples."""
    total, samples = torch.zeros(2, dtype=torch.float64), 0
    with torch.no_grad():
        for x, y in subject.batches(progress):
            logits = subject.view.run(Pass(closed), x)
            check_classes(logits, y)
            total += losses(logits, y).cpu()
            samples += len(y)
    loss, error = (total / samples).tolist()
    return Score(loss, error), samples


def evaluate_model(model: nn.Module, data: Data) -> Score:
    """How well any model does, with highway layers or without."""
    model = twin(model).eval()
    total, samples = torch.zeros(2, dtype=torch.float64), 0
    with torch.no_grad():
        for x, y in go_through(data, _BATCH, device(model)):
            logits = model(x.clone())
            check_classes(logits, y)
            total += losses(logits, y).cpu()
            samples += len(y)
    loss, error = (total / samples).tolist()
    return Score(loss, error)


def check_classes(logits: Tensor, y: Tensor) -> None:
    """Refuse class numbers that the logits do not have."""
    if y.dim() != 1 or y.is_floating_point():
        raise UserError(f"y must be class numbers of shape (batch,), got {y.dtype} of shape {tuple(y.shape)}")
    least, most = (int(value) for value in y.aminmax())
    if least < 0 or most >= logits.shape[1]:
        wrong = least if least < 0 else most
        raise UserError(f"the data has a class number {wrong}, and the model tells 0 to {logits.shape[1] - 1} apart")
