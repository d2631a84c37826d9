"""The cost of a batch compared with a training step: `python benchmarks/batches.py`.

Times one batch of 100 CIFAR-shaped images with crop and mirror against one training step of `highway-mnist-16` at batch
100. The two are interleaved, so that other load on the machine affects both. The aim is a tenth of a step or less.
"""

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from _result import write_result
from torch import Tensor, nn

from verydeep.data import Augment, Batches, Split

BATCH = 100
REPEATS = 100
OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "batches.json"


def endless(batches: Batches) -> Iterator[tuple[Tensor, Tensor]]:
    epoch = 0
    while True:
        yield from batches.epoch(epoch)
        epoch += 1


def batch_maker() -> Callable[[], Any]:
    split = Split(torch.randn(50_000, 3, 32, 32), torch.randint(0, 10, (50_000,)))
    batches = endless(Batches(split, BATCH, seed=0, augment=Augment(pad=8, mirror=True)))
    return lambda: next(batches)


def training_step() -> Callable[[], Any]:
    from verydeep.models import create_model

    model = create_model("highway-mnist-16")
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    x, y = torch.rand(BATCH, 1, 28, 28), torch.randint(0, 10, (BATCH,))

    def step() -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()

    return step


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def measure(threads: int) -> dict[str, Any]:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    works = {"batch": batch_maker(), "step": training_step()}
    for work in works.values():
        for _ in range(10):
            work()
    times = {name: [] for name in works}
    for _ in range(REPEATS):
        for name, work in works.items():
            times[name].append(timed(work))
    result: dict[str, Any] = {"threads": threads}
    for name, values in times.items():
        result[f"{name}_ms"] = {"minimum": round(min(values), 4), "median": round(statistics.median(values), 4)}
    for how in ("minimum", "median"):
        result[f"ratio_of_{how}s"] = round(result["batch_ms"][how] / result["step_ms"][how], 4)
    return result


def main() -> None:
    result = {
        "what": f"batch of {BATCH} images 3x32x32, pad 8, crop, mirror; step of highway-mnist-16 at batch {BATCH}",
        "repeats": REPEATS,
        "measured": [measure(threads) for threads in sorted({1, os.cpu_count() or 1})],
    }
    write_result(OUT, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
