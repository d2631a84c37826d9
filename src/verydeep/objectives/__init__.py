"""What a task asks of a network: the loss to train on, the predictions, and how correct ones are counted.

An objective takes a network's outputs and the targets of a batch and returns sums over the batch. Training, evaluation
and analysis all measure through an objective, and whole splits through `evaluate_batches`, so their numbers agree.
"""

from verydeep.objectives._classification import Classification
from verydeep.objectives._evaluate import Totals, evaluate_batches
from verydeep.objectives._objective import Objective, loss_and_correct as loss_and_correct

__all__ = ["Classification", "Objective", "Totals", "evaluate_batches"]
