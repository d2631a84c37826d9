"""Datasets as tensors: the paper's image sets and the user's own; preprocessing, augmentation and batches."""

from verydeep.data._arrays import ArrayPreparation
from verydeep.data._augment import Augment, crop_and_mirror, turn
from verydeep.data._batches import Batches
from verydeep.data._columns import TablePreparation
from verydeep.data._config import DataConfig
from verydeep.data._dataset import Dataset, Split
from verydeep.data._inputs import Inputs
from verydeep.data._load import load_dataset
from verydeep.data._new import load_split
from verydeep.data._preprocess import global_contrast_normalise, per_pixel_mean, scale

__all__ = [
    "ArrayPreparation",
    "Augment",
    "Batches",
    "DataConfig",
    "Dataset",
    "Inputs",
    "Split",
    "TablePreparation",
    "crop_and_mirror",
    "global_contrast_normalise",
    "load_dataset",
    "load_split",
    "per_pixel_mean",
    "scale",
    "turn",
]
