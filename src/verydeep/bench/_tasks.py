"""What is measured: comparisons of one network, batch size, number of threads and mode each, and properties of ours."""

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

CONV_DEPTH = 5  # highway layers of the convolutional networks
_DEPTHS = (10, 20, 50, 100, 1000, 10_000)
_NETWORKS = ("highway-mnist-16", "highway-a", "highway-b")


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        kind: "highway" and "plain" are fully connected, "conv" is a stack of convolutional highway layers, and "named"
            is a network of the zoo.
        depth: Number of hidden layers, or of convolutional highway layers.
        width: Number of blocks, or of feature maps.
        batch: Samples per step.
        threads: Number of cores that every competitor may use.
        mode: "train" is a whole step, from drawing the batch to the update; "infer" is a forward pass.
        side: Height and width of the feature maps.
        network: The name of a network of the zoo, which also decides its depth and its width.
    """

    kind: Literal["highway", "plain", "conv", "named"]
    depth: int
    width: int
    batch: int
    threads: int
    mode: Literal["train", "infer"]
    side: int = 0
    network: str = ""

    @property
    def name(self) -> str:
        """A short name for files and tables."""
        if self.network:
            return f"{self.mode}-{self.network}-b{self.batch}-t{self.threads}"
        side = f"-{self.side}x{self.side}" if self.side else ""
        return f"{self.mode}-{self.kind}-d{self.depth}-w{self.width}{side}-b{self.batch}-t{self.threads}"

    @property
    def input_shape(self) -> tuple[int, ...]:
        if self.kind == "named":
            return (1, 28, 28) if "mnist" in self.network else (3, 32, 32)
        return (3, self.side, self.side) if self.kind == "conv" else (1, 28, 28)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


BASE = Case("highway", 50, 50, 100, 1, "train")


@dataclass(frozen=True)
class BenchTask:
    """One measurement, made in a process with some number of cores.

    Attributes:
        name: Name of the result's file.
        threads: Number of cores of the process.
        message: What to measure, sent to the measuring process.
        fresh_process: Whether it needs its own process, because it measures memory or a first call.
        kernel_cache: Whether kernels compiled by an earlier process are available; None uses the user's cache.

    Example:
        >>> from verydeep.bench import BenchTask
        >>> BenchTask("peak-t1", threads=1, message={"task": "peak", "seconds": 0.5}).name
        'peak-t1'
    """

    name: str
    threads: int
    message: dict[str, Any]
    fresh_process: bool = False
    kernel_cache: bool | None = None


def bench_tasks(quick: bool, compile: bool = True) -> list[BenchTask]:
    """List everything to measure, sorted by number of threads.

    Args:
        quick: List only what takes a minute or two; the full list takes an hour.
        compile: Include torch.compile, which needs a C++ compiler.

    Example:
        >>> from verydeep.bench import bench_tasks
        >>> [task.name for task in bench_tasks(quick=True)][:3]
        ['peak-t1', 'first-call-uncached', 'first-call-cached']
    """
    seconds, rounds = (1.5, 5) if quick else (6.0, 15)
    cores = available_cores()
    tasks = [BenchTask(f"peak-t{n}", n, {"task": "peak", "seconds": 0.5}) for n in (1, 2)]
    tasks += [
        BenchTask(f"first-call-{cache}", 1, {"task": "first_call"}, fresh_process=True, kernel_cache=cache == "cached")
        for cache in ("uncached", "cached")
    ]
    depths = _DEPTHS[2:4] if quick else _DEPTHS
    tasks += [_depth_task(depth, seconds, recompute=False) for depth in depths if depth <= 1000]
    tasks += [_depth_task(depth, seconds, recompute=True) for depth in depths]
    settings = {"task": "compare", "seconds": seconds, "rounds": rounds, "compile": compile}
    tasks += [BenchTask(case.name, case.threads, settings | {"case": case.to_dict()}) for case in bench_cases(quick)]
    return sorted((task for task in tasks if task.threads <= len(cores)), key=lambda task: task.threads)


def selected_tasks(tasks: list[BenchTask], only: str | None) -> list[BenchTask]:
    """The tasks whose names contain a text; by default, all."""
    return [task for task in tasks if only is None or only in task.name]


def available_cores() -> list[int]:
    """The cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def bench_cases(quick: bool) -> list[Case]:
    """Each size varied on its own from 50 layers of 50 blocks at batch 100, and the convolutional networks."""
    if quick:
        sizes = [BASE, replace(BASE, depth=10), _conv(16, 28)]
        single = [replace(BASE, batch=1), _named(_NETWORKS[0], 1)]
        return _with_modes(sizes, (1, 2), ("train",)) + _with_modes(single, (1,), ("infer",))
    sizes = [replace(BASE, depth=depth) for depth in (10, 20, 50, 100, 1000)]
    sizes += [replace(BASE, width=128), replace(BASE, kind="plain", width=71)]
    sizes += [replace(BASE, batch=batch) for batch in (1, 500)]
    sizes += [_conv(channels, 28) for channels in (16, 32)]
    sizes += [_conv(channels, side) for side in (32, 16) for channels in (32, 64)]
    named = [_named(name, batch) for name in _NETWORKS for batch in (1, 100)]
    return _with_modes(sizes, (1, 2), ("train", "infer")) + _with_modes(named, (1, 2), ("infer",))


def _named(name: str, batch: int) -> Case:
    return Case("named", 0, 0, batch, 1, "infer", network=name)


def _conv(channels: int, side: int) -> Case:
    return Case("conv", CONV_DEPTH, channels, 100, 1, "train", side)


def _with_modes(sizes: list[Case], threads: Iterable[int], modes: Iterable[Literal["train", "infer"]]) -> list[Case]:
    return [replace(size, threads=n, mode=mode) for n in threads for size in sizes for mode in modes]


def _depth_task(depth: int, seconds: float, recompute: bool) -> BenchTask:
    name = f"depth-{depth}" + ("-recompute" if recompute else "")
    message = {"task": "depth", "depth": depth, "seconds": seconds, "recompute": recompute}
    return BenchTask(name, 1, message, fresh_process=True)
