"""What is measured: one network, batch size, number of threads, and training or inference."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

CONV_DEPTH = 5  # highway layers of the convolutional networks


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        kind: "highway" and "plain" are fully connected, "conv" is a stack of convolutional highway layers.
        depth: Hidden layers, or convolutional highway layers.
        width: Blocks, or feature maps.
        batch: Samples of a step.
        threads: Cores that every competitor has.
        mode: "train" is a whole step, from drawing the batch to the update; "infer" is a forward pass.
        side: Of the feature maps.
    """

    kind: Literal["highway", "plain", "conv"]
    depth: int
    width: int
    batch: int
    threads: int
    mode: Literal["train", "infer"]
    side: int = 0

    @property
    def name(self) -> str:
        """Short, for files and tables."""
        side = f"-{self.side}x{self.side}" if self.side else ""
        return f"{self.mode}-{self.kind}-d{self.depth}-w{self.width}{side}-b{self.batch}-t{self.threads}"

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (3, self.side, self.side) if self.kind == "conv" else (1, 28, 28)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


BASE = Case("highway", 50, 50, 100, 1, "train")


def bench_cases(quick: bool) -> list[Case]:
    """Every size varied on its own from 50 layers of 50 blocks at batch 100, and the convolutional networks."""
    if quick:
        sizes = [BASE, replace(BASE, depth=10), _conv(16, 28)]
        return _with_modes(sizes, (1, 2), ("train",)) + _with_modes([replace(BASE, batch=1)], (1,), ("infer",))
    sizes = [replace(BASE, depth=depth) for depth in (10, 20, 50, 100, 1000)]
    sizes += [replace(BASE, width=128), replace(BASE, kind="plain", width=71)]
    sizes += [replace(BASE, batch=batch) for batch in (1, 500)]
    sizes += [_conv(channels, 28) for channels in (16, 32)]
    sizes += [_conv(channels, side) for side in (32, 16) for channels in (32, 64)]
    return _with_modes(sizes, (1, 2), ("train", "infer"))


def _conv(channels: int, side: int) -> Case:
    return Case("conv", CONV_DEPTH, channels, 100, 1, "train", side)


def _with_modes(sizes: list[Case], threads: Iterable[int], modes: Iterable[Literal["train", "infer"]]) -> list[Case]:
    return [replace(size, threads=n, mode=mode) for n in threads for size in sizes for mode in modes]
