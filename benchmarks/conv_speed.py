"""How fast the networks of the tables train: `python benchmarks/conv_speed.py`.

Runs the trainer's whole loop with each row's `fast` recipe (batches, augmentation, forward, backward, clipping, update)
on random images, with one thread, and compares it with the machine's fastest matrix product, timed before and after
each network. Operations are counted as if every convolution were computed directly, six per multiply-add of the forward
pass. A network can therefore be faster than a matrix product: Winograd's transforms multiply less.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from _loop import make_trainer, random_images, train_steps
from _result import write_result

from verydeep.bench import matmul_peak
from verydeep.models import Network, multiply_adds
from verydeep.paper import TABLE_ROWS, read_recipe
from verydeep.training import TrainingProgress

OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "conv-speed.json"
NAMES = [row.name for row in TABLE_ROWS if row.data != "CIFAR-100" and row.name and "hints" not in row.name]
SHAPES = {"mnist": (1, 28, 28), "cifar10": (3, 32, 32)}
REPEATS, STEPS = 5, 2


def measure(name: str, folder: str) -> dict[str, Any]:
    config = read_recipe(name, "fast")
    data = random_images(2 * STEPS * config.batch_size, SHAPES[config.data.source], 10)
    trainer = make_trainer(config, data, folder, TrainingProgress())
    assert isinstance(trainer.model, Network)
    product = matmul_peak(0.5)["gflops"]
    times = []
    for repeat in range(REPEATS + 1):  # the first is a warm-up
        start = time.perf_counter()
        train_steps(trainer, repeat, STEPS)
        times.append(time.perf_counter() - start)
    product = max(product, matmul_peak(0.5)["gflops"])
    images, products = STEPS * config.batch_size / min(times[1:]), multiply_adds(trainer.model)
    gflops = 6e-9 * products * images
    return {
        "network": name,
        "multiply_adds": products,
        "images_per_second": round(images, 1),
        "gflops": round(gflops, 1),
        "matrix_product_gflops": round(product, 1),
        "of_matrix_product": round(gflops / product, 2),
    }


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rows = []
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(name, folder))
        print(json.dumps(rows[-1]), flush=True)
    what = "images per second in training, one thread, fastest of several repeats, and the ratio to a matrix product"
    write_result(OUT, {"what": what, "repeats": REPEATS, "steps_in_a_repeat": STEPS, "networks": rows})


if __name__ == "__main__":
    main()
