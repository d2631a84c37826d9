"""`highway-conv` against the 50-layer `highway-mlp` on small image folders: `python benchmarks/small_images.py`.

Folders of PNG files: scikit-learn's digits, 1,000 images of MNIST and 2,000 of CIFAR-10, a tenth held out for
validation, and 1,000 test images (all that there are of the digits). Both networks get the same number of updates,
`highway-mlp` once with the settings of `highway-conv` and once with plain SGD. The settings were chosen on validation
images. A seed also chooses the training images. The result is results/benchmarks/small-images.json.
"""

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from _result import write_result
from PIL import Image

from verydeep.config import to_dict
from verydeep.data import DataConfig
from verydeep.data.known._fetch import load_raw
from verydeep.training import ModelConfig, OptimConfig, ScheduleConfig, TrainConfig, train

FOLDERS = {"digits": 1438, "mnist": 1000, "cifar10": 2000}
TESTED = 1000
UPDATES = 500
BATCH = 50
OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "small-images.json"

MUON = TrainConfig(
    DataConfig("digits"),
    ModelConfig("highway-conv"),
    OptimConfig("muon", lr=0.02, nesterov=True, weight_decay=0.1),
    ScheduleConfig("one-cycle", warmup=0.2),
    label_smoothing=0.1,
)
SGD = replace(MUON, optim=OptimConfig("sgd", lr=0.01), schedule=ScheduleConfig("constant"), label_smoothing=0.0)
NETWORKS = {
    "highway-conv": MUON,
    "highway-mlp": replace(MUON, model=ModelConfig("highway-mlp")),
    "highway-mlp, SGD": replace(SGD, model=ModelConfig("highway-mlp")),
}


def make_folder(root: Path, name: str, count: int, seed: int) -> Path:
    raw = load_raw(name, None)
    full = 16 if name == "digits" else 255
    order = torch.randperm(len(raw.train.y), generator=torch.Generator().manual_seed(seed))[:count]
    chosen = {"train": (raw.train, order.tolist()), "test": (raw.test, range(min(TESTED, len(raw.test.y))))}
    for split, (samples, rows) in chosen.items():
        for row in rows:
            path = root / split / raw.classes[samples.y[row]] / f"{row}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = (samples.x[row].int() * 255 // full).byte().permute(1, 2, 0).squeeze(2).numpy()
            Image.fromarray(pixels).save(path)
    return root


def measure(folder: Path, root: Path, config: TrainConfig, count: int, seed: int) -> tuple[float, float]:
    """Test accuracy in percent after the last epoch, and seconds of CPU time."""
    epochs = round(UPDATES / -(-count * 9 // 10 // BATCH))
    data = DataConfig(str(folder), validation=0.1)
    config = replace(config, data=data, epochs=epochs, batch_size=BATCH, seed=seed)
    start = time.process_time()
    run = train(config, root, progress=False)
    last: Any = run.metrics[-1]
    return round(100 * last.test_accuracy, 2), round(time.process_time() - start, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name, count in FOLDERS.items():
        for network, config in NETWORKS.items():
            with tempfile.TemporaryDirectory() as root:
                found = [
                    measure(
                        make_folder(Path(root) / f"{seed}", name, count, seed),
                        Path(root) / f"run-{seed}",
                        config,
                        count,
                        seed,
                    )
                    for seed in range(options.seeds)
                ]
            accuracies, seconds = [accuracy for accuracy, _ in found], [spent for _, spent in found]
            row = {"images": name, "count": count, "network": network, "mean": round(statistics.mean(accuracies), 2)}
            rows.append(row | {"test_accuracy": accuracies, "cpu_seconds": seconds})
            print(rows[-1], flush=True)
    settings = {
        name: {part: to_dict(config)[part] for part in ("optim", "schedule")} for name, config in NETWORKS.items()
    }
    write_result(OUT, {"updates": UPDATES, "batch_size": BATCH, "settings": settings, "folders": rows})


if __name__ == "__main__":
    main()
