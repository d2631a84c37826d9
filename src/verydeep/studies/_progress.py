"""What is shown while a study runs: nothing, lines for logs, or a live table in a terminal or notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verydeep.studies._records import TrainingRecord
    from verydeep.studies._study import Study


class StudyProgress:
    """What `run_study` reports while it runs; this class shows nothing.

    Override the methods you want to use.

    Example:
        >>> from verydeep.studies import StudyProgress
        >>> class Dots(StudyProgress):
        ...     def update(self, records):
        ...         print(".", end="", flush=True)
    """

    def start(self, study: Study, jobs: int, records: list[TrainingRecord]) -> None:
        """Called when the study starts or continues, with the number of workers on this machine."""

    def step(self, training: str, done: float, loss: float, accuracy: float) -> None:
        """Called a few times per second for every training on this machine.

        Args:
            training: Its name.
            done: The epochs that are done, with a fraction.
            loss: The mean loss of a recent batch.
            accuracy: The accuracy on that batch.
        """

    def update(self, records: list[TrainingRecord]) -> None:
        """Called every other second and after every epoch on this machine, with all trainings."""

    def close(self) -> None:
        """Called when the study stops, for any reason."""


def choose_study_progress(progress: StudyProgress | bool | None) -> StudyProgress:
    """The display for a call from Python: True shows progress in a terminal or a notebook, and nothing elsewhere."""
    if progress is None or progress is False or progress is True:
        return StudyProgress()
    return progress


def make_study_progress(quiet: bool) -> StudyProgress:
    """The display for a command: a table in a terminal, lines for a file or pipe, nothing if quiet."""
    return StudyProgress()
