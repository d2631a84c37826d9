"""What a run notes of its data, so that it is not continued on other data unawares."""

import zlib
from typing import Any

import torch
from torch import Tensor

from verydeep.data import Dataset, Split

_LOOKED_AT = 100  # samples spread over the training set: enough to notice another file, and free for a huge one


def fingerprint(dataset: Dataset) -> dict[str, Any]:
    """How many samples and classes there are, of which shape, and a checksum of labels and some samples."""
    sizes = {name: None if split is None else len(split) for name, split in _splits(dataset).items()}
    last = len(dataset.train) - 1
    rows = torch.linspace(0, last, _LOOKED_AT).long().clamp(max=last)  # in float32, a large one may be rounded up
    samples = dataset.train.x[rows.to(dataset.train.x.device)]
    checksum = zlib.crc32(_bytes(samples), zlib.crc32(_bytes(dataset.train.y)))
    return sizes | {"shape": list(samples.shape[1:]), "classes": len(dataset.classes), "checksum": checksum}


def differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What is not as it was, in words; empty when all is."""
    return ", ".join(f"{name} {before[name]}, now {now[name]}" for name in before if before[name] != now.get(name))


def _splits(dataset: Dataset) -> dict[str, Split | None]:
    return {"train": dataset.train, "valid": dataset.valid, "test": dataset.test}


def _bytes(values: Tensor) -> memoryview:
    return values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
