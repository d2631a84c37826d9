"""What a trained network expects: kept with a run, it feeds the network new data."""

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from verydeep.data import _images, _npz, _table_files
from verydeep.data._arrays import ArrayPreparation
from verydeep.data._columns import TablePreparation
from verydeep.data._dataset import Dataset
from verydeep.errors import UserError


@dataclass(frozen=True)
class Inputs:
    """The classes, and what was done to the raw values; all plain numbers and text, for `verydeep.config` and JSON."""

    classes: tuple[str, ...]
    preparation: ArrayPreparation | TablePreparation

    @classmethod
    def of(cls, dataset: Dataset) -> "Inputs":
        """What `dataset` was prepared with."""
        if dataset.preparation is None:
            raise UserError(f"dataset '{dataset.name}' was not prepared by load_dataset")
        return cls(dataset.classes, dataset.preparation)

    def read(self, path: str | os.PathLike[str], delimiter: str = ",") -> Tensor:
        """New samples, ready for the network, from a table, an `.npz` with `x`, or one image."""
        file = Path(path)
        if not file.is_file():
            raise UserError(f"{file}: no such file")
        if isinstance(self.preparation, TablePreparation):
            return self.preparation(_table_files.read_table(file, delimiter))
        if file.suffix.lower() == ".npz":
            return self.preparation(_npz.read_samples(file))
        return self.preparation(self._image(file))

    def _image(self, path: Path) -> Tensor:
        assert isinstance(self.preparation, ArrayPreparation)
        if len(self.preparation.shape) != 3:
            raise UserError(f"{path}: the network was trained on {self.preparation.shape} numbers, not on images")
        channels, height, width = self.preparation.shape
        image = _images.with_channels(_images.read_image(path, (height, width)), channels)
        return torch.from_numpy(image.copy())[None]
