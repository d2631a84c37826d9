"""Loss and error of a model, measured by the evaluation loop that training uses too."""

from functools import partial

from torch import Tensor, nn

from verydeep.analysis._blocks import Closed, ForwardMode, shadow_copy
from verydeep.analysis._data import NO_SAMPLES, Data, ModelAndData, device_of, iterate
from verydeep.analysis._results import Score
from verydeep.cpu import cpu_settings
from verydeep.errors import UserError
from verydeep.objectives import Classification, Totals, evaluate_batches

_BATCH = 500


@cpu_settings()
def evaluate_model(model: nn.Module, data: Data) -> Score:
    """Measure any model that returns logits, with or without highway layers.

    Args:
        model: The model; it is not changed.
        data: A `Split`, or batches.
    """
    copied = shadow_copy(model).eval()

    def forward(x: Tensor) -> Tensor:
        return copied(x.clone())  # type: ignore[no-any-return]  # it may change x in place

    device = device_of(copied)
    totals = evaluate_batches(forward, iterate(data, _BATCH, device), Classification(), device=device)
    if totals.samples == 0:
        raise UserError(NO_SAMPLES)
    return Score(totals.loss, totals.error)


def evaluate_closed(subject: ModelAndData, closed: Closed = frozenset()) -> Totals:
    """Measure a model with some layers closed."""
    forward = partial(subject.model.run, ForwardMode(closed))
    return evaluate_batches(forward, subject.batches(), Classification(), device=subject.device)
