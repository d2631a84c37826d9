"""Datasets as tensors: the paper's image datasets and the user's own data, prepared and served in batches.

A name, a path, a DataFrame or arrays come in (`DataConfig`, `load_dataset`). `known/` finds, fetches and parses the
known datasets, `own/` reads the user's data, and `prepare/` splits, numbers the classes and normalises the values. A
`Dataset` with its splits as tensors comes out, which `Batches` shuffles, augments and cuts into batches.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.data._augment import Augment, crop_and_mirror as crop_and_mirror, rotate_and_scale as rotate_and_scale
    from verydeep.data._batches import Batches
    from verydeep.data._config import DataConfig
    from verydeep.data._contact_sheet import contact_sheet, save_contact_sheet as save_contact_sheet
    from verydeep.data._dataset import Dataset, Split
    from verydeep.data._load import (
        load_dataset,
        load_split as load_split,
        load_with_raw as load_with_raw,
        raw_samples as raw_samples,
    )
    from verydeep.data._split_checksum import (
        checksum as checksum,
        split_checksum as split_checksum,
        spread as spread,
    )
    from verydeep.data._task import Task
    from verydeep.data.known._catalogue import (
        KNOWN_DATASETS as KNOWN_DATASETS,
        KNOWN_NAMES as KNOWN_NAMES,
        KnownDataset as KnownDataset,
        known_dataset as known_dataset,
    )
    from verydeep.data.known._fetch import fetch_files as fetch_files, load_raw as load_raw
    from verydeep.data.known._formats import parse_dataset as parse_dataset
    from verydeep.data.known._local_files import (
        FoundFiles as FoundFiles,
        VerifiedFile as VerifiedFile,
        find_files as find_files,
        locate_files as locate_files,
    )
    from verydeep.data.own._in_memory import (
        InMemory as InMemory,
        in_memory as in_memory,
        is_dataframe as is_dataframe,
        table_of as table_of,
    )
    from verydeep.data.own._progress import reading_progress as reading_progress
    from verydeep.data.own._save_in_memory import save_in_memory as save_in_memory
    from verydeep.data.own._table import Table as Table
    from verydeep.data.own._table_files import iterate_tables as iterate_tables, read_table as read_table
    from verydeep.data.own._table_options import TableOptions as TableOptions
    from verydeep.data.own._written import MISSING as MISSING
    from verydeep.data.prepare._columns import (
        PERIODS as PERIODS,
        CategoryColumn as CategoryColumn,
        DateColumn as DateColumn,
        NumberColumn as NumberColumn,
        TablePreparation as TablePreparation,
    )
    from verydeep.data.prepare._fit_columns import fit_table as fit_table
    from verydeep.data.prepare._inputs import Inputs
    from verydeep.data.prepare._new_samples import NewSamples as NewSamples, Rows as Rows, iterate_new as iterate_new
    from verydeep.data.prepare._preprocess import (
        ArrayPreparation as ArrayPreparation,
        contrast_factor as contrast_factor,
        fit_arrays as fit_arrays,
        global_contrast_normalise as global_contrast_normalise,
        per_pixel_mean as per_pixel_mean,
        scale as scale,
    )
    from verydeep.data.prepare._split import UnpreparedSplit as UnpreparedSplit, add_splits as add_splits
    from verydeep.data.prepare._targets import ready_targets as ready_targets
    from verydeep.data.prepare._whitening import unpack_matrix as unpack_matrix
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = ["Augment", "Batches", "DataConfig", "Dataset", "Inputs", "Split", "Task", "contact_sheet", "load_dataset"]
