"""A network that teaches another: a run that has ended, on the same data."""

from verydeep.errors import UserError
from verydeep.models import Network
from verydeep.training._config import TrainConfig
from verydeep.training._run import Run


def load_teacher(config: TrainConfig, classes: int) -> Network:
    """The teacher of a configuration, its weights fixed.

    Args:
        config: The student's.
        classes: Of the student's data.
    """
    path = config.distill.teacher
    assert path is not None
    run = Run.load(path)
    if run.summary is not None and run.summary["status"] == "diverged":
        raise UserError(f"distill.teacher: {path} diverged; choose another run, or train it anew at a lower rate")
    if run.summary is None:
        raise UserError(f"distill.teacher: {path} has not finished; train it first: verydeep train --resume {path}")
    for name in ("source", "preprocess", "seed", "validation"):
        theirs, ours = (getattr(data, name) for data in (run.config.data, config.data))
        if theirs != ours:
            raise UserError(f"distill.teacher: {path} was trained with data.{name} = {theirs}, its student has {ours}")
    teacher = run.model
    if teacher.config.classes != classes:
        raise UserError(f"distill.teacher: {path} knows {teacher.config.classes} classes, the data has {classes}")
    return teacher.requires_grad_(False)
