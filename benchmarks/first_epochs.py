"""How the authors may have prepared their images: `python benchmarks/first_epochs.py`.

The logs of the authors' 19-layer networks begin with 33.84 % on CIFAR-10 and 2.61 % on CIFAR-100 after one epoch, and
with a test loss of 2.497 and 5.719 before training. Their files name contrast normalisation, but neither its scale nor
whether the images were whitened. For each preparation, this script trains one epoch of the authors' recipe, and
measures the loss on 1,000 test images of ten untrained networks, whose first layer has weights from N(0, 1) as in the
authors' file.

Killed at any time, it continues where it was. `--only cifar10-zca` trains some of the networks; the others keep their
results.
"""

import argparse
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from _result import write_result

from verydeep.cpu import cpu_settings
from verydeep.data import load_dataset
from verydeep.errors import UserError
from verydeep.files import read_json
from verydeep.paper import read_recipe
from verydeep.training import Interrupted, TrainConfig, environment, evaluate, make_model, train

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "benchmarks" / "first-epochs.json"
PREPARATIONS: dict[str, dict[str, Any]] = {
    "deviation 1": {},
    "norm 35": {"contrast_norm": 35.0},
    "zca": {"preprocess": "zca"},
}
AUTHORS = {"cifar10": (0.3384, 2.497), "cifar100": (0.0261, 5.719)}  # accuracy after one epoch, loss before training
DRAWS, IMAGES = 10, 1000  # networks whose loss before training is measured, and on how many test images


def settings(source: str, preparation: str) -> TrainConfig:
    config = read_recipe(f"highway-19-nin-{source}", "paper")
    return replace(config, epochs=1, data=replace(config.data, **PREPARATIONS[preparation]))


def untrained_losses(config: TrainConfig) -> list[float]:
    """The test loss of networks with the authors' first layer."""
    dataset = load_dataset(config.data)
    assert dataset.test is not None
    images = replace(dataset.test, x=dataset.test.x[:IMAGES], y=dataset.test.y[:IMAGES])
    losses = []
    for seed in range(DRAWS):
        model = make_model(replace(config, seed=seed), dataset)
        first = next(parameter for parameter in model.parameters() if parameter.ndim == 4)
        with torch.no_grad():
            first.normal_(generator=torch.Generator().manual_seed(seed))
        losses.append(round(evaluate(model, images).loss, 4))
    return losses


def measure(source: str, preparation: str, folder: Path) -> dict[str, Any]:
    config = settings(source, preparation)
    run = train(config, folder, resume=True)
    accuracy, authors = AUTHORS[source]
    with cpu_settings(1):
        losses = untrained_losses(config)
    return {
        "test_accuracy": run.metrics[-1].test_accuracy,
        "authors_test_accuracy": accuracy,
        "untrained_test_losses": losses,
        "untrained_test_loss": round(statistics.mean(losses), 4),
        "authors_untrained_test_loss": authors,
        "seed": config.seed,
        "seconds": round(run.metrics[-1].seconds),
        "environment": environment(),
    }


def main() -> None:
    names = {
        f"{source}-{preparation.replace(' ', '-')}": (source, preparation)
        for source in AUTHORS
        for preparation in PREPARATIONS
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=names, default=list(names), metavar="NETWORK")
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "first-epochs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = read_json(OUT)["rows"] if OUT.exists() else {}
    for name in options.only:
        rows[name] = measure(*names[name], options.folder / name)
        print(name, {key: value for key, value in rows[name].items() if key != "environment"}, flush=True)
        write_result(OUT, {"rows": rows})


if __name__ == "__main__":
    try:
        main()
    except (UserError, Interrupted) as error:
        raise SystemExit(str(error)) from error
