"""Snapshots: the weights of a run after some of its epochs, to see how a network learned."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a run's folder is listed without torch
    from torch import Tensor

_SCALES = "/scales"  # what follows the name of a rounded tensor; names of parameters have no slash


def snapshot_epochs(epochs: int, snapshots: int) -> frozenset[int]:
    """After which epochs weights are kept: none, or the start and some that are spread evenly, the last among them."""
    if snapshots == 0:
        return frozenset()
    return frozenset(round(epochs * number / snapshots) for number in range(snapshots + 1))


def save_snapshot(folder: Path, epoch: int, weights: Mapping[str, "Tensor"]) -> None:
    """Write the weights after an epoch into the folder of a run."""
    from verydeep.models import save_tensors

    save_tensors(weights, _file(folder, epoch))


def save_rounded_snapshot(folder: Path, epoch: int, weights: Mapping[str, "Tensor"]) -> None:
    """Write the weights after an epoch in a quarter of the space, for networks that come with a package."""
    import torch

    from verydeep.models import quantise, save_tensors

    tensors = {}
    for name, value in weights.items():
        if value.is_floating_point():
            multiples, scales = quantise(value.numpy(force=True))
            tensors[name], tensors[name + _SCALES] = torch.from_numpy(multiples), torch.from_numpy(scales)
        else:
            tensors[name] = value
    save_tensors(tensors, _file(folder, epoch))


def read_snapshot(path: Path) -> dict[str, "Tensor"]:
    """Read the weights that `save_snapshot` or `save_rounded_snapshot` has written."""
    import torch

    from verydeep.models import dequantise, read_tensors

    tensors = read_tensors(path)
    for name in [name.removesuffix(_SCALES) for name in tensors if name.endswith(_SCALES)]:
        scales = tensors.pop(name + _SCALES)
        tensors[name] = torch.from_numpy(dequantise(tensors[name].numpy(), scales.numpy()))
    return tensors


def _file(folder: Path, epoch: int) -> Path:
    return folder / "snapshots" / f"{epoch:06}.safetensors"


def list_snapshots(folder: Path) -> dict[int, Path]:
    """The file of each snapshot in the folder of a run, by epochs completed."""
    files = (folder / "snapshots").glob("*.safetensors")
    return {int(file.stem): file for file in sorted(files) if re.fullmatch(r"\d{6,}", file.stem, re.ASCII)}
