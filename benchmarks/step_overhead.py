"""The cost of a training step outside forward, backward and update: `python benchmarks/step_overhead.py`.

Compares the real loop (`Trainer.train_epoch`: batches, learning rate, seeding, counting, checking the loss, the
progress bar) with a bare loop of forward, backward and update over the same batches, prepared in advance. Both train
the 50-layer highway network at batch 100 in one process; their epochs alternate, and so does the order, so that other
load on the machine affects both. The time is processor time on one core (of all threads, including that of the bar),
which other load hardly changes. The overhead is 1 - bare / real; the aim is below a tenth.
"""

import io
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from _loop import make_trainer, random_images, train_steps
from _result import write_result
from torch import Tensor

from verydeep.data import DataConfig, Dataset
from verydeep.models import MLP
from verydeep.training import ModelConfig, OptimConfig, ProgressBar, TrainConfig, complete_config, make_model
from verydeep.training.step._optimiser import make_optimiser

OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "step-overhead.json"
SAMPLES, REPEATS = 60_000, 30
STEPS = 50  # of each loop in one repeat


class Terminal(io.StringIO):
    """Receives what the progress bar draws, like a terminal."""

    def isatty(self) -> bool:
        return True


def bare_loop(model: MLP, optimiser: torch.optim.Optimizer, batches: list[tuple[Tensor, Tensor]]) -> None:
    for x, y in batches:
        optimiser.zero_grad()
        model.backward_cross_entropy(x, y, 1 / len(y))
        optimiser.step()


def measure(data: Dataset, folder: str) -> dict[str, Any]:
    config = complete_config(
        TrainConfig(
            DataConfig("mnist"), ModelConfig(depth=50), OptimConfig(lr=0.01), epochs=1000, device="cpu", threads=1
        )
    )
    torch.set_num_threads(1)
    report = ProgressBar()
    trainer = make_trainer(config, data, folder, report)
    report.start(trainer.run, trainer.state.position, len(trainer.batches))
    bare = make_model(config, data)
    assert isinstance(bare, MLP)
    optimiser = make_optimiser(bare, config.optim)
    times: dict[str, list[float]] = {"real": [], "bare": []}
    for repeat in range(REPEATS + 1):
        batches = list(trainer.batches.epoch(repeat, len(trainer.batches) - STEPS))
        works = {
            "real": lambda: train_steps(trainer, repeat, STEPS),  # noqa: B023
            "bare": lambda: bare_loop(bare, optimiser, batches),  # noqa: B023
        }
        for name in ("real", "bare") if repeat % 2 else ("bare", "real"):
            start = time.process_time()
            works[name]()
            if repeat:  # the first is a warm-up
                times[name].append((time.process_time() - start) / STEPS * 1e3)
    report.close()
    return summary(times)


def summary(times: dict[str, list[float]]) -> dict[str, Any]:
    shares = [1 - bare / real for bare, real in zip(times["bare"], times["real"], strict=True)]
    low, middle, high = statistics.quantiles(shares, n=4)
    result: dict[str, Any] = {
        f"{name}_ms": {"minimum": round(min(values), 3), "median": round(statistics.median(values), 3)}
        for name, values in times.items()
    }
    result["overhead_of_minima"] = round(1 - min(times["bare"]) / min(times["real"]), 4)
    result["overhead_median_of_pairs"] = round(middle, 4)
    result["overhead_quartiles_of_pairs"] = [round(low, 4), round(high, 4)]
    return result


def main() -> None:
    torch.manual_seed(0)
    data, stdout = random_images(SAMPLES, (1, 28, 28), 10), sys.stdout
    sys.stdout = Terminal()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(data, folder)
    sys.stdout = stdout
    result = {
        "what": "share of a training step of a 50-layer highway MLP at batch 100 outside forward, backward and update",
        "aim": "under 0.1",
        "time": "of the processor, one thread of torch",
        "repeats": REPEATS,
        "steps_in_a_repeat": STEPS,
        **measured,
    }
    write_result(OUT, result)
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
