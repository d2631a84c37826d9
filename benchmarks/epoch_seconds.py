"""Seconds per epoch of the networks in the paper's tables: `python benchmarks/epoch_seconds.py`.

Trains every row of Tables 1 to 3 for a few batches of random images, with the settings of its short recipe and one
thread, and measures a few batches of the evaluation. From the fastest batch of each kind follow the seconds per epoch,
the test included, and the number of epochs that fit into 150 minutes: the recipes in configs/short have at most that
many. The time is processor time; other load changes it less than it changes the time of day, but by up to a factor of
two on a busy machine. Rows with hints are measured in their second stage, which is the slower one, with a teacher of
random weights. Name rows to measure only these; the others keep their results.

`python benchmarks/epoch_seconds.py --set-epochs` measures nothing. It writes the epochs that fit, at most those of the
fast recipe, into the files in configs/short, and a quarter of them as the epochs of hints and companions.
"""

import json
import re
import sys
import time
import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from _result import write_result
from torch import Tensor

from verydeep.config import config_folder, read_settings
from verydeep.data import Dataset, Split, Task
from verydeep.models import Network, create_model
from verydeep.paper import TABLE_ROWS, read_recipe
from verydeep.training import ProcessGroup, TrainConfig, make_model
from verydeep.training._objective import make_objective
from verydeep.training.step._distillation import Distillation
from verydeep.training.step._forward import make_forward
from verydeep.training.step._loss import TrainingLoss, make_loss
from verydeep.training.step._optimiser import make_optimiser

OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "epoch-seconds.json"
IMAGES = {
    "mnist": ((1, 28, 28), 60_000, 10),
    "cifar10": ((3, 32, 32), 50_000, 10),
    "cifar100": ((3, 32, 32), 50_000, 100),
}
TESTED = 10_000  # images of each test set
MINUTES = 150
BATCHES = 3  # the first one is a warm-up


def random_dataset(config: TrainConfig) -> Dataset:
    shape, _, classes = IMAGES[config.data.source]
    split = Split(torch.randn(config.batch_size, *shape), torch.arange(config.batch_size) % classes)
    names = tuple(map(str, range(classes)))
    return Dataset(config.data.source, split, None, split, names, task=Task("classification", names))


def make_step_loss(config: TrainConfig, dataset: Dataset, model: Network) -> TrainingLoss:
    """The loss of the recipe; a teacher has random weights."""
    group, objective = ProcessGroup(0, 1, torch.device("cpu")), make_objective(config, dataset)
    forward = make_forward(model, config, group.device)
    if config.distill.teacher is None:
        return make_loss(config, objective, model, forward, dataset.task, group)
    teacher = create_model("maxout").requires_grad_(False).eval()
    return Distillation(config, objective, forward, model, teacher, nullcontext)


def fastest(work: Callable[[], object]) -> float:
    times = []
    for _ in range(BATCHES):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times[1:])


def measure(name: str) -> dict[str, Any]:
    config = read_recipe(name, "short")
    dataset = random_dataset(config)
    model = make_model(config, dataset)
    loss = make_step_loss(config, dataset, model)
    optimiser = make_optimiser(model, config.optim, loss.extra, config.companion.head_lr)
    x, y = dataset.train.x, dataset.train.y

    def step() -> None:
        for parameter in model.parameters():
            parameter.grad = None
        loss.backward(x, y, 1 / len(y), config.distill.hint_epochs, 0.5)
        optimiser.step()

    def test() -> Tensor:
        with torch.no_grad():
            outputs: Tensor = model(x)
        return outputs

    update = fastest(step)
    model.eval()
    evaluation = fastest(test)
    batches = -(-IMAGES[config.data.source][1] // config.batch_size)
    seconds = batches * update + TESTED / config.batch_size * evaluation
    return {
        "seconds_per_update": round(update, 4),
        "seconds_per_tested_batch": round(evaluation, 4),
        "batch_size": config.batch_size,
        "optimiser": config.optim.name,
        "seconds_per_epoch": round(seconds, 1),
        "epochs_that_fit": int(60 * MINUTES / seconds),
    }


def set_epochs(name: str, fit: int) -> None:
    """Write the number of epochs into a short recipe, if it differs from that of the file that it extends."""
    path = config_folder() / "short" / f"{name}.toml"
    text = re.sub(r"^epochs = \d+\n", "", path.read_text(), flags=re.MULTILINE)
    inherited = read_settings(path.parent / tomllib.loads(text)["extends"])["epochs"]
    epochs = max(1, min(fit, read_recipe(name, "fast").epochs))
    if epochs != inherited:
        text = re.sub(r"^(extends = .*\n)", rf"\1epochs = {epochs}\n", text, flags=re.MULTILINE)
    quarter = max(1, round(epochs / 4))
    path.write_text(re.sub(r"^(hint_epochs|until) = \d+", rf"\1 = {quarter}", text, flags=re.MULTILINE))


def main() -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if sys.argv[1:] == ["--set-epochs"]:
        measured = json.loads(OUT.read_text())["rows"]
        for name in sorted(measured, key=lambda name: name.endswith("-hints")):  # these extend others
            set_epochs(name, measured[name]["epochs_that_fit"])
        return
    names = sys.argv[1:] or [row.name for row in TABLE_ROWS if row.name]
    rows = json.loads(OUT.read_text())["rows"] if OUT.exists() else {}
    for name in names:
        rows[name] = measure(name)
        print(f"{name:<26} {rows[name]}", flush=True)
        write_result(OUT, {"minutes": MINUTES, "rows": rows})


if __name__ == "__main__":
    main()
