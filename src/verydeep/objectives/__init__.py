"""What a task asks of a network: the loss to train on, the predictions, and how good they are.

An objective takes a network's outputs and the targets of a batch and returns sums over the batch. Training, evaluation
and analysis all measure through an objective, and whole splits through `evaluate_batches`, so their numbers agree. A
`Metric` is computed from all predictions on a split.
"""

from verydeep.objectives._classification import Classification
from verydeep.objectives._draws import draw_samples as draw_samples
from verydeep.objectives._evaluate import Totals, evaluate_batches
from verydeep.objectives._inputs import (
    Inputs as Inputs,
    batch_length as batch_length,
    call_model as call_model,
    first_of as first_of,
    map_tensors as map_tensors,
    move_inputs as move_inputs,
)
from verydeep.objectives._language_model import (
    CausalLanguageModel,
    LanguageModel as LanguageModel,
    MaskedLanguageModel,
)
from verydeep.objectives._make import objective_for
from verydeep.objectives._metric import (
    Metric,
    find_metric as find_metric,
    metric_names as metric_names,
)
from verydeep.objectives._multilabel import MultiLabel
from verydeep.objectives._objective import Objective
from verydeep.objectives._regression import Regression

__all__ = [
    "CausalLanguageModel",
    "Classification",
    "MaskedLanguageModel",
    "Metric",
    "MultiLabel",
    "Objective",
    "Regression",
    "Totals",
    "evaluate_batches",
    "objective_for",
]
