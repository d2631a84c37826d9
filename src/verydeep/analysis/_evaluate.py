"""Loss and error of a model, measured by the evaluation loop that training uses too."""

from functools import partial

import torch
from torch import Tensor, nn

from verydeep.analysis._data import (
    NO_SAMPLES,
    Data,
    ModelAndData,
    as_batched,
    device_of,
    find_objective,
    half_type,
    iterate,
)
from verydeep.analysis.blocks._blocks import Closed, ForwardMode, shadow_copy
from verydeep.analysis.lesions._lesion_results import Score
from verydeep.cpu import cpu_settings
from verydeep.errors import UserError
from verydeep.objectives import (
    Inputs,
    Objective,
    Totals,
    batch_length,
    call_model,
    evaluate_batches,
    map_tensors,
)

_BATCH = 500


@cpu_settings()
def evaluate_model(model: nn.Module, data: Data, *, objective: Objective | None = None) -> Score:
    """Measure any model, with or without blocks that can be closed.

    Args:
        model: The model; it is not changed.
        data: A pair `(x, y)` of arrays or tensors, a split of a `Dataset`, or batches.
        objective: What is measured; by default, the task of a split. Without a task, whole numbers are classes and
            fractions the targets of a regression.

    Returns:
        Loss and error.

    Example:
        >>> from verydeep.analysis import evaluate_model
        >>> from verydeep.data import load_dataset
        >>> from verydeep.models import create_model
        >>> data = load_dataset("digits")
        >>> model = create_model("highway-mlp", depth=4, width=16, input_shape=(1, 8, 8))
        >>> score = evaluate_model(model, data.test)
        >>> 0 <= score.accuracy <= 1
        True
    """
    copied = shadow_copy(model).eval()

    device = device_of(copied)
    batched = as_batched(data, model, objective)
    measured = find_objective(batched, objective)

    def forward(x: Inputs) -> Tensor:
        output = call_model(copied, map_tensors(Tensor.clone, x))  # it may change x in place
        return measured.read_output(output, batch_length(x))

    batches = iterate(batched, _BATCH, device, objective=measured, dtype=half_type(copied))
    totals = evaluate_batches(forward, batches, measured, device=device)
    if totals.samples == 0:
        raise UserError(NO_SAMPLES)
    return Score(totals.loss, totals.error, measured.measure)


def evaluate_closed(subject: ModelAndData, closed: Closed = frozenset()) -> tuple[Totals, Tensor]:
    """Measure a model with some layers closed: in all, and what each sample adds to the error, float64, `(sample,)`."""
    forward = partial(subject.model.run, ForwardMode(closed))
    objective, errors = subject.objective, []

    def keep(outputs: Tensor, y: Tensor) -> None:
        errors.append(objective.errors(outputs, y).cpu())

    totals = evaluate_batches(forward, subject.batches(), objective, device=subject.device, observe=keep)
    return totals, torch.cat(errors) @ objective.error_weights(totals.values, totals.samples)
