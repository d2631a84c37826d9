"""Snapshots: the weights of a run after some of its epochs, to see how a network learned."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a run's folder is listed without torch
    from torch import Tensor


def snapshot_epochs(epochs: int, snapshots: int) -> frozenset[int]:
    """After which epochs weights are kept: none, or the start and some that are spread evenly, the last among them."""
    if snapshots == 0:
        return frozenset()
    return frozenset(round(epochs * number / snapshots) for number in range(snapshots + 1))


def save_snapshot(folder: Path, epoch: int, weights: Mapping[str, "Tensor"]) -> None:
    """Write the weights after an epoch into the folder of a run."""
    from verydeep.models import save_tensors

    save_tensors(weights, folder / "snapshots" / f"{epoch:06}.safetensors")


def list_snapshots(folder: Path) -> dict[int, Path]:
    """The file of each snapshot in the folder of a run, by epochs completed."""
    files = (folder / "snapshots").glob("*.safetensors")
    return {int(file.stem): file for file in sorted(files) if re.fullmatch(r"\d{6,}", file.stem, re.ASCII)}
