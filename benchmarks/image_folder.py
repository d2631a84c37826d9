"""The memory and speed of image folders of growing size: `python benchmarks/image_folder.py`.

Folders of colour JPEG files of 224x224 pixels, from one that fits into memory to one that takes 19 GB once prepared.
Each is loaded by a process of its own on one thread, which then iterates over two epochs of training batches and, for
comparison, trains `highway-conv` for a few steps. Beyond the limit for folders in memory, the peak of memory must not
grow with the number of images. The result is results/benchmarks/image-folder.json.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from verydeep.processes import python_command

if TYPE_CHECKING:
    from torch import Tensor

COUNTS = (1_000, 4_000, 8_000, 16_000, 32_000)
SIDE = 224
DISTINCT = 500  # different pictures; the other files are links to them, which are decoded all the same
BATCH = 50
STEPS = 5
OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "image-folder.json"


def make_folder(root: Path, count: int) -> Path:
    from PIL import Image

    random = np.random.default_rng(0)
    originals = []
    for i in range(DISTINCT):
        coarse = Image.fromarray(random.integers(0, 256, (14, 14, 3)).astype(np.uint8))
        originals.append(root / f"{i}.jpg")
        coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(originals[-1], quality=90)
    for split, images in (("train", count), ("test", 100)):
        for i in range(images):
            target = root / "images" / split / "ab"[i % 2] / f"{i}.jpg"
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(originals[i % DISTINCT], target)
    return root / "images"


def measure(folder: Path) -> None:
    """Print what one folder takes; runs in a process of its own."""
    import torch

    from verydeep.data import Batches, load_dataset

    torch.set_num_threads(1)
    before, start = peak(), time.process_time()
    data = load_dataset(folder)
    result: dict[str, Any] = {"load_cpu_seconds": round(time.process_time() - start, 2)}
    for epoch in range(2):
        start = time.process_time()
        seen = sum(len(y) for _, y in Batches(data.train, BATCH, seed=0).epoch(epoch))
        result[f"epoch_{epoch + 1}_images_per_cpu_second"] = round(seen / (time.process_time() - start))
    decoded, used = data.train.x.numel() / 2**20, peak()
    sizes = {"decoded_mib": round(decoded), "prepared_mib": round(4 * decoded)}
    result["trained_images_per_cpu_second"] = round(training_speed(*next(Batches(data.train, BATCH, seed=0).epoch(0))))
    print(json.dumps(sizes | {"peak_mib": round(used), "of_it_for_torch_mib": round(before)} | result))


def training_speed(x: "Tensor", y: "Tensor") -> float:
    """Images of a training step of `highway-conv` per second of CPU time."""
    import torch

    from verydeep.models import create_model

    model = create_model("highway-conv", input_shape=tuple(x.shape[1:]), classes=2)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in range(STEPS + 1):
        if step < 2:  # the first step, which may compile kernels, is not counted
            start = time.process_time()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    return STEPS * len(y) / (time.process_time() - start)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def main() -> None:
    from _result import write_result

    from verydeep.data.own._image_folder import IN_MEMORY, KEPT

    rows = []
    for count in COUNTS:
        with tempfile.TemporaryDirectory() as root:
            folder = make_folder(Path(root), count)
            command = [*python_command(__file__), str(folder)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows.append({"images": count} | json.loads(done.stdout))
        print(rows[-1])
    limits = {"in_memory_up_to_mib_prepared": IN_MEMORY // 2**20, "kept_mib_decoded": KEPT // 2**20}
    write_result(OUT, {"side": SIDE, "batch_size": BATCH, "threads": 1} | limits | {"folders": rows})


if __name__ == "__main__":
    measure(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
