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
from verydeep.data import DataConfig, load_dataset
from verydeep.data.known._fetch import load_raw
from verydeep.training import ModelConfig, OptimConfig, ScheduleConfig, TrainConfig, evaluate, train

FOLDERS = {"digits": 1438, "mnist": 1000, "cifar10": 2000}
TESTED = 1000
UPDATES = 300
BATCH = 50
OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "small-images.json"

DATA = DataConfig("a folder of images", validation=0.1)
MUON = TrainConfig(
    DATA,
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


def make_folder(root: Path, name: str, seed: int) -> Path:
    raw = load_raw(name, None)
    full = 16 if name == "digits" else 255
    order = torch.randperm(len(raw.train.y), generator=torch.Generator().manual_seed(seed))[: FOLDERS[name]]
    chosen = {"train": (raw.train, order.tolist()), "test": (raw.test, range(min(TESTED, len(raw.test.y))))}
    for split, (samples, rows) in chosen.items():
        for row in rows:
            path = root / split / raw.classes[samples.y[row]] / f"{row}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = (samples.x[row].int() * 255 // full).byte().permute(1, 2, 0).squeeze(2).numpy()
            Image.fromarray(pixels).save(path)
    return root


def measure(folder: Path, root: Path, config: TrainConfig, seed: int) -> dict[str, Any]:
    data = load_dataset(folder, validation=0.1)
    updates = -(-len(data.train) // BATCH)  # per epoch
    config = replace(config, epochs=round(UPDATES / updates), batch_size=BATCH, seed=seed, evaluate_test="never")
    start = time.process_time()
    run = train(config, root, dataset=data, progress=False)
    seconds = time.process_time() - start
    accuracy = evaluate(run.model, data.test).accuracy
    return {"test_accuracy": round(100 * accuracy, 2), "epochs": config.epochs, "cpu_seconds": round(seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = [
        {"images": name, "network": network, "runs": []} for name in FOLDERS for network in NETWORKS
    ]
    for seed in range(options.seeds):
        for row in rows:
            with tempfile.TemporaryDirectory() as root:
                folder = make_folder(Path(root) / "images", row["images"], seed)
                row["runs"].append(measure(folder, Path(root) / "run", NETWORKS[row["network"]], seed))
            accuracies = [run["test_accuracy"] for run in row["runs"]]
            print(row["images"], row["network"], accuracies, flush=True)
            row["mean_test_accuracy"] = round(statistics.mean(accuracies), 2)
        settings = {name: to_dict(config) for name, config in NETWORKS.items()}
        write_result(OUT, {"updates": UPDATES, "folders": rows, "settings": settings})


if __name__ == "__main__":
    main()
