"""Loss and error of a model, measured by the evaluation loop that training uses too."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from verydeep.analysis._data import (
    NO_SAMPLES,
    Data,
    ModelAndData,
    Progress,
    as_batched,
    device_of,
    find_objective,
    half_type,
    iterate,
)
from verydeep.analysis.blocks._blocks import Closed, ForwardMode, run_example, shadow_copy
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
        output = run_example(partial(call_model, copied), x)
        return measured.read_output(output, batch_length(x))

    batches = iterate(batched, _BATCH, device, objective=measured, dtype=half_type(copied))
    totals = evaluate_batches(forward, batches, measured, device=device)
    if totals.samples == 0:
        raise UserError(NO_SAMPLES)
    return Score(totals.loss, totals.error, measured.measure)


def evaluate_closed(
    subject: ModelAndData, closed: Sequence[Closed], progress: Progress | None = None
) -> tuple[list[Totals], list[Tensor]]:
    """Measure a model with several sets of layers closed, in one pass over the data, whose order may be random.

    Args:
        subject: The model and its data.
        closed: The sets of layers.
        progress: Called with the fraction of the work that is done.

    Returns:
        For each set, the totals, and what each sample adds to the error, float64, `(sample,)`.
    """
    objective, samples = subject.objective, 0
    values = torch.zeros(len(closed), objective.size, dtype=torch.float64)
    errors: list[Tensor] = []
    with torch.no_grad():
        for x, y in subject.batches(progress):
            wrong: list[Tensor] = []
            for number, layers in enumerate(closed):
                outputs = subject.model.run(ForwardMode(layers), x)
                objective.check(outputs, y)
                values[number] += objective.totals(outputs, y).cpu()
                wrong.append(objective.errors(outputs, y).cpu())
            errors.append(torch.stack(wrong))
            samples += len(y)
    of_samples = torch.cat(errors, dim=1)
    weights = [objective.error_weights(row, samples) for row in values]
    return (
        [Totals(row, samples, objective) for row in values],
        [each @ weight for each, weight in zip(of_samples, weights, strict=True)],
    )
