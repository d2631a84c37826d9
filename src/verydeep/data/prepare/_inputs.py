"""What a trained network expects of its input: stored with a run, and used to read new data for it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from verydeep.data._dataset import Dataset
from verydeep.data._task import Task
from verydeep.data.own._table_options import TableOptions
from verydeep.data.prepare._columns import TablePreparation
from verydeep.data.prepare._new_samples import Rows, iterate_new
from verydeep.data.prepare._preprocess import ArrayPreparation
from verydeep.errors import UserError


@dataclass(frozen=True)
class Inputs:
    """What a trained network expects and answers: how raw values are prepared, and what its outputs are.

    It holds plain numbers and text, which `verydeep.config` turns into JSON.

    Attributes:
        classes: The class names; output i of the network belongs to `classes[i]`. Empty unless the task is
            classification.
        preparation: How raw values become inputs of the network.
        task: What is predicted; by default, one of the classes.

    Example:
        >>> import numpy as np
        >>> from verydeep.data import Inputs, load_dataset
        >>> x, y = np.arange(40.0).reshape(20, 2), np.repeat(["low", "high"], 10)
        >>> inputs = Inputs.of(load_dataset((x, y), preprocess="standardise"))
        >>> np.savez("new.npz", x=[[3.0, 5.0]])
        >>> inputs.read("new.npz").shape
        torch.Size([1, 2])
    """

    classes: tuple[str, ...]
    preparation: ArrayPreparation | TablePreparation
    task: Task = None  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        if self.task is None:
            object.__setattr__(self, "task", Task("classification", self.classes))

    @classmethod
    def of(cls, dataset: Dataset) -> "Inputs":
        """The inputs of a network trained on `dataset`."""
        if dataset.preparation is None:
            raise UserError(f"dataset '{dataset.name}' was not prepared by load_dataset")
        return cls(dataset.classes, dataset.preparation, dataset.task)

    def read(self, rows: Rows, delimiter: str = ",", decimal: str = ".", encoding: str = "utf-8") -> Tensor:
        """Read new samples, ready for the network.

        Args:
            rows: A path (a table, an `.npz` file with `x`, an image or a folder of images), a DataFrame of pandas or
                polars, a list of dictionaries, or an array.
            delimiter: The column separator of CSV files.
            decimal: The decimal point of numbers in CSV files.
            encoding: The encoding of CSV files.
        """
        text = self.preparation.text_columns if isinstance(self.preparation, TablePreparation) else frozenset[str]()
        options = TableOptions(delimiter, decimal, encoding, text)
        return torch.cat([part.x for part in iterate_new(rows, self.preparation, options)])
