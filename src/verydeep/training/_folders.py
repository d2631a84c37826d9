"""Folders for runs that were given none: runs/MODEL-DATA-1, -2 and so on."""

from pathlib import Path

from verydeep.data import Dataset
from verydeep.files import cannot_write, make_folder
from verydeep.training._config import TrainConfig


def numbered_folder(config: TrainConfig, dataset: Dataset, number: int) -> Path:
    """The folder of a number."""
    return Path("runs") / f"{config.model.name}-{dataset.name}-{number}"


def free_number(config: TrainConfig, dataset: Dataset) -> int:
    """Make the first folder that is free and return its number: of two commands at once, each gets its own."""
    make_folder(Path("runs"))
    number = 1
    while True:
        path = numbered_folder(config, dataset, number)
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise cannot_write(path, error) from error
        else:
            return number
