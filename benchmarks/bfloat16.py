"""Speed and accuracy of `precision = "bfloat16"` beside float32: `python benchmarks/bfloat16.py`.

The speed is that of training steps (forward, backward, fused SGD) of highway networks of 50 layers on random images, on
one thread, in interleaved rounds. The accuracy is that of the highway networks of 10, 50 and 100 layers on MNIST, with
the settings of configs/highway*-mnist.toml cut to a few epochs, from three seeds in each precision: the training loss
of the last epoch and the test accuracy. `--speed` and `--accuracy` measure only one of both; the other keeps its
results.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from _result import write_result
from torch import Tensor, nn

from verydeep.kernels import has_bfloat16
from verydeep.models import create_model
from verydeep.training import read_config, train

OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "bfloat16.json"
SIZES = [(width, batch) for width in (50, 128, 256) for batch in (100, 500)]
ROUNDS, SEEDS, EPOCHS = 40, (0, 1, 2), 5


def train_step(model: nn.Module, optimiser: torch.optim.Optimizer, x: Tensor, y: Tensor, bfloat16: bool) -> None:
    optimiser.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
        logits = model(x)
    torch.nn.functional.cross_entropy(logits, y).backward()
    optimiser.step()


def measure_speed(width: int, batch: int) -> dict[str, Any]:
    """Milliseconds per step in both precisions, and the quartiles of their ratio over rounds."""
    torch.manual_seed(0)
    x, y = torch.randn(batch, 784), torch.randint(0, 10, (batch,))
    steps = {}
    for name in ("float32", "bfloat16"):
        model = create_model("highway-mlp", depth=50, width=width)
        optimiser = torch.optim.SGD(model.parameters(), 0.001, fused=True)
        steps[name] = partial(train_step, model, optimiser, x, y, name == "bfloat16")
    times: dict[str, list[float]] = {name: [] for name in steps}
    repeats = max(1, 3000 // (width * batch // 50))
    for _ in range(ROUNDS):
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(repeats):
                step()
            times[name].append((time.perf_counter() - start) / repeats * 1e3)
    ratios = [a / b for a, b in zip(times["float32"][1:], times["bfloat16"][1:], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {
        **{f"{name}_ms": round(min(values), 3) for name, values in times.items()},
        "times_as_fast": round(min(times["float32"]) / min(times["bfloat16"]), 3),
        "over_rounds": [round(low, 3), round(middle, 3), round(high, 3)],
    }


def measure_accuracy(depth: int, folder: Path) -> dict[str, Any]:
    """Training loss and test accuracy after a few epochs, of every seed."""
    found: dict[str, Any] = {}
    config = read_config(f"highway{depth}-mnist")
    for precision in ("float32", "bfloat16"):
        for seed in SEEDS:
            changed = replace(config, epochs=EPOCHS, seed=seed, precision=precision, threads=1)
            run = train(changed, folder / f"{depth}-{precision}-{seed}")
            last = run.metrics[-1]
            found.setdefault(precision, []).append({"seed": seed, "loss": last.loss, "accuracy": last.test_accuracy})
    return found


def main() -> int:
    if not has_bfloat16():
        print("this processor has no AVX512-BF16", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    result = json.loads(OUT.read_text()) if OUT.exists() else {}
    if "--accuracy" not in sys.argv:
        result["load_before"] = os.getloadavg()[0]
        result["speed"] = {f"width {w}, batch {b}": measure_speed(w, b) for w, b in SIZES}
    if "--speed" not in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            result["accuracy"] = {f"{d} layers": measure_accuracy(d, Path(folder)) for d in (10, 50, 100)}
    write_result(OUT, {"what": "bfloat16 beside float32", "seeds": SEEDS, "epochs": EPOCHS, **result})
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
