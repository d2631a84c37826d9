"""Training steps in kernels against single steps, and against a matrix product: `python benchmarks/training_steps.py`.

Trains highway networks on random samples with the trainer's own loop (`Trainer.train_epoch`: batches, learning rate,
seeding, counting, checking the loss), once with whole steps in kernels and once step by step, where torch gathers the
batch, computes the loss and updates the weights. Both take turns in one process. The times are those of a clock, minima
and quartiles over the rounds. The last column compares the speed of a step with that of the fastest of three square
matrix products in torch, measured between the rounds; a step counts as three products per weight and sample.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from _loop import make_trainer, train_steps
from _result import write_result

from verydeep.data import DataConfig, Dataset, Split
from verydeep.training import ModelConfig, OptimConfig, TrainConfig, TrainingProgress, complete_config
from verydeep.training._trainer import Trainer

OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "training-steps.json"
ROUNDS, STEPS = 15, 50
SIZES = (  # layers, width, inputs, batch
    (50, 50, 784, 100),
    (10, 50, 784, 100),
    (50, 128, 784, 100),
    (50, 50, 784, 1),
    (10, 50, 30, 32),
    (2, 50, 30, 32),
)
CLASSES, LR = 10, 0.01


def random_data(samples: int, inputs: int) -> Dataset:
    split = Split(torch.randn(samples, inputs), torch.arange(samples) % CLASSES)
    return Dataset("random", split, None, Split(split.x[:100], split.y[:100]), tuple(map(str, range(CLASSES))))


def trainer(size: tuple[int, int, int, int], threads: int, folder: str, in_kernels: bool) -> Trainer:
    layers, width, inputs, batch = size
    config = complete_config(
        TrainConfig(
            DataConfig("mnist"),
            ModelConfig(depth=layers, width=width),
            OptimConfig(lr=LR),
            epochs=1000,
            batch_size=batch,
            device="cpu",
            threads=threads,
        )
    )
    torch.manual_seed(0)
    made = make_trainer(config, random_data(STEPS * max(batch, 20), inputs), folder, TrainingProgress())
    assert made.kernel_steps is not None
    if not in_kernels:
        made.kernel_steps = None
    return made


def matrix_product() -> float:
    """GFLOP/s of the fastest product of square matrices."""
    best = 0.0
    for side in (512, 1024, 2048):
        a, b, c = (torch.randn(side, side) for _ in range(3))
        for _ in range(2**31 // side**3):
            start = time.perf_counter()
            torch.mm(a, b, out=c)
            best = max(best, 2e-9 * side**3 / (time.perf_counter() - start))
    return best


def flops(size: tuple[int, int, int, int]) -> float:
    layers, width, inputs, batch = size
    weights = inputs * width + (layers - 1) * 2 * width * width + width * CLASSES
    unneeded = inputs * width  # the gradient of the samples
    return 2.0 * batch * (3 * weights - unneeded)


def measure(size: tuple[int, int, int, int], threads: int) -> dict[str, Any]:
    torch.set_num_threads(threads)
    times: dict[str, list[float]] = {"kernels": [], "single": []}
    peak = 0.0
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        trainers = {"kernels": trainer(size, threads, one, True), "single": trainer(size, threads, other, False)}
        for number in range(ROUNDS + 1):
            for name in ("kernels", "single") if number % 2 else ("single", "kernels"):
                time.sleep(0.02)
                start = time.perf_counter()
                train_steps(trainers[name], number, STEPS)
                if number:  # the first round is a warm-up
                    times[name].append((time.perf_counter() - start) / STEPS * 1e3)
            if number % 5 == 0:
                peak = max(peak, matrix_product())
    ratios = [single / ours for ours, single in zip(times["kernels"], times["single"], strict=True)]
    fastest = min(times["kernels"])
    return {
        "kernels_ms": round(fastest, 4),
        "single_ms": round(min(times["single"]), 4),
        "times_as_fast": round(min(times["single"]) / fastest, 2),
        "over_rounds": [round(each, 2) for each in statistics.quantiles(ratios, n=4, method="inclusive")],
        "gflops": round(flops(size) / fastest / 1e6, 1),
        "matrix_product_gflops": round(peak, 1),
        "of_matrix_product": round(flops(size) / fastest / 1e6 / peak, 3),
    }


def main() -> None:
    torch.set_flush_denormal(True)
    measured = []
    for threads in (1, 2):
        for size in SIZES:
            names = dict(zip(("layers", "width", "inputs", "batch"), size, strict=True))
            measured.append(names | {"threads": threads} | measure(size, threads))
            print(measured[-1], flush=True)
    write_result(OUT, {"rounds": ROUNDS, "steps_per_round": STEPS, "measured": measured})


if __name__ == "__main__":
    main()
