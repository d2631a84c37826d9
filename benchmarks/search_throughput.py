"""Settings per hour, against the same search written naively: `python benchmarks/search_throughput.py [--settings 8]`.

Ours is `verydeep search` with two workers of one thread each, including checkpoints and records. The naive search
trains the same settings one after another in one process with two threads, in eager PyTorch, and saves nothing. Both
compute the loss over the whole training set after each epoch. The result is results/benchmarks/search-throughput.json.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from _result import write_result
from torch import Tensor, nn

from verydeep.data import load_dataset
from verydeep.processes import python_command
from verydeep.search import read_search
from verydeep.studies import draw

ROOT = Path(__file__).parents[1]
CONFIG = """
epochs = {epochs}
evaluate_train = true
evaluate_test = false
data = {{ source = "mnist" }}
model = {{ name = "highway-mlp", depth = {depth} }}
schedule = {{ name = "exponential" }}

[search]
trials = {settings}
metric = "train_loss"

[search.space]
optim.lr = {{ low = 0.01, high = 0.3, log = true }}
optim.momentum = {{ low = 0.5, high = 0.95 }}
schedule.factor = {{ low = 0.9, high = 1.0 }}
model.activation = {{ choices = ["tanh", "relu"] }}
model.gate_bias = {{ low = -6.0, high = -1.0 }}
"""


class Highway(nn.Module):
    """A highway layer written straight from the paper's equations."""

    def __init__(self, width: int, activation: str, gate_bias: float) -> None:
        super().__init__()
        self.h, self.t = nn.Linear(width, width), nn.Linear(width, width)
        self.activation = torch.tanh if activation == "tanh" else torch.relu
        nn.init.constant_(self.t.bias, gate_bias)

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(self.t(x))
        return self.activation(self.h(x)) * gate + x * (1 - gate)


def train_naively(settings: dict[str, Any], depth: int, epochs: int, x: Tensor, y: Tensor) -> float:
    torch.manual_seed(0)
    layers = [Highway(50, settings["model.activation"], settings["model.gate_bias"]) for _ in range(depth - 1)]
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 50), nn.Tanh(), *layers, nn.Linear(50, 10))
    optimiser = torch.optim.SGD(model.parameters(), settings["optim.lr"], settings["optim.momentum"])
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, settings["schedule.factor"])
    loss = 0.0
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(100):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimiser.step()
        schedule.step()
        with torch.no_grad():
            parts = zip(x.split(1000), y.split(1000), strict=True)
            loss = sum(float(nn.functional.cross_entropy(model(a), b, reduction="sum")) for a, b in parts) / len(y)
    return loss


def naive_seconds(file: Path, depth: int, epochs: int, settings: int) -> float:
    config = read_search(file)
    began = time.perf_counter()
    data = load_dataset("mnist").train
    torch.set_num_threads(2)
    for number in range(settings):
        train_naively(draw(config.space, 0, number), depth, epochs, data.x, data.y)
    return time.perf_counter() - began


def our_seconds(file: Path, folder: Path) -> float:
    began = time.perf_counter()
    command = python_command("-m", "verydeep", "search", str(file), "--study", str(folder), "--jobs", "2", "--quiet")
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("settings", 8), ("epochs", 2), ("depth", 50)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "benchmarks" / "search-throughput.json")
    options = parser.parse_args()
    shape = {"settings": options.settings, "epochs": options.epochs, "depth": options.depth}
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "search.toml"
        file.write_text(CONFIG.format(**shape))
        ours = our_seconds(file, Path(name) / "study")
        naive = naive_seconds(file, options.depth, options.epochs, options.settings)
    rates = {kind: 3600 * options.settings / seconds for kind, seconds in (("ours", ours), ("naive", naive))}
    found = {**shape, "settings_an_hour": rates, "ratio": rates["ours"] / rates["naive"]}
    write_result(options.out, found)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
