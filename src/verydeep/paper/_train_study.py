"""Training a study of the paper: its records go to the results, and a training that failed is an error."""

from collections.abc import Callable, Collection
from pathlib import Path

from verydeep.errors import UserError
from verydeep.studies import Budget, Study, StudyProgress, TrainingRecord, run_study


def train_study(
    study: Study,
    only: Collection[str] | None,
    record: Callable[[TrainingRecord], None],
    jobs: int,
    root: Path | None,
    seconds: float | None,
    progress: StudyProgress,
) -> bool:
    """Train until nothing is left, the user interrupts or time is up; return whether the user interrupted.

    Args:
        study: The study.
        only: The names of the groups or trainings to train, by default all; those that failed before are tried again.
        record: Called with every training that has new epochs or a result.
        jobs: Number of workers on this machine.
        root: Folder of the known datasets.
        seconds: Time limit; None for no limit.
        progress: What is shown meanwhile.

    Raises:
        UserError: A training failed, or none can be trained here.
    """
    study.retry_failed(only)
    ending = run_study(
        study,
        jobs=jobs,
        budget=Budget(seconds),
        only=only,
        root=root,
        progress=progress,
        on_epoch=lambda each, _: record(each),
        on_end=record,
    )
    if ending == "interrupted":
        return True
    for each in study.records(only):
        if each.status == "failed":
            raise UserError(f"{each.name} failed: {each.reason}; the same command tries again")
    return False
