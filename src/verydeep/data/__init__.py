"""Datasets as tensors: the paper's image datasets and the user's own data, prepared and served in batches.

A name or a path comes in (`DataConfig`, `load_dataset`). `known/` finds, fetches and parses the known datasets, `own/`
reads the user's files, and `prepare/` splits, numbers the classes and normalises the values. A `Dataset` with its
splits as tensors comes out, which `Batches` shuffles, augments and cuts into batches.
"""

from verydeep.data._augment import Augment, crop_and_mirror, rotate_and_scale
from verydeep.data._batches import Batches
from verydeep.data._config import DataConfig
from verydeep.data._contact_sheet import contact_sheet, save_contact_sheet
from verydeep.data._dataset import Dataset, Split
from verydeep.data._load import load_dataset, load_split
from verydeep.data.known._catalogue import KNOWN_DATASETS, KnownDataset, known_dataset
from verydeep.data.known._fetch import fetch_files, load_raw
from verydeep.data.known._formats import parse_dataset
from verydeep.data.known._local_files import FoundFiles, VerifiedFile, find_files
from verydeep.data.prepare._columns import TablePreparation
from verydeep.data.prepare._inputs import Inputs
from verydeep.data.prepare._preprocess import (
    ArrayPreparation,
    global_contrast_normalise,
    per_pixel_mean,
    scale,
)

__all__ = [
    "KNOWN_DATASETS",
    "ArrayPreparation",
    "Augment",
    "Batches",
    "DataConfig",
    "Dataset",
    "FoundFiles",
    "Inputs",
    "KnownDataset",
    "Split",
    "TablePreparation",
    "VerifiedFile",
    "contact_sheet",
    "crop_and_mirror",
    "fetch_files",
    "find_files",
    "global_contrast_normalise",
    "known_dataset",
    "load_dataset",
    "load_raw",
    "load_split",
    "parse_dataset",
    "per_pixel_mean",
    "rotate_and_scale",
    "save_contact_sheet",
    "scale",
]
