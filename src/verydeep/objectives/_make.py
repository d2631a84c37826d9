"""From a task to the objective that trains and measures it."""

import torch
from torch import Tensor

from verydeep.data import Task
from verydeep.objectives._classification import Classification
from verydeep.objectives._multilabel import MultiLabel
from verydeep.objectives._objective import Objective
from verydeep.objectives._regression import Regression


def objective_for(task: Task | None, y: Tensor | None = None) -> Objective:
    """The objective with which a task is measured.

    Args:
        task: What is predicted; by default, it follows from the targets: floating-point numbers are those of a
            regression, whole numbers are classes.
        y: Some targets.

    Example:
        >>> import torch
        >>> from verydeep.objectives import objective_for
        >>> objective_for(None, torch.tensor([0.5, 1.5])).measure
        'r2'
    """
    kind = task.kind if task is not None else "regression" if _are_numbers(y) else "classification"
    if kind == "regression":
        return Regression(task.outputs if task is not None else 1 if y is None or y.dim() < 2 else y.shape[1])
    return MultiLabel() if kind == "multilabel" else Classification()


def _are_numbers(y: Tensor | None) -> bool:
    return y is not None and torch.is_floating_point(y)
