"""The pages in docs/live: `python benchmarks/live_pages.py [NAME ...]`.

Writes the interactive pages of trained networks: of those that come with verydeep, and of one for a table, which is
trained here in about a minute. Each is one file that needs no server; docs/explore.md says what one can do with it.

    highway50-mnist     verydeep explore pretrained:highway50-mnist -o docs/live/highway50-mnist.html
    highway-mnist-16    verydeep explore pretrained:highway-mnist-16 -o docs/live/highway-mnist-16.html
    breast-cancer       the table that `write_table` makes from scikit-learn's data, then the settings in `TABLE`
"""

import argparse
import csv
import tempfile
from dataclasses import replace
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.report import write_explore
from verydeep.training import ModelConfig, Run, TrainConfig, list_pretrained, train

FOLDER = Path(__file__).parents[1] / "docs" / "live"
LIMIT = 3e6  # bytes
TABLE = TrainConfig(
    model=ModelConfig("highway-mlp", depth=20, width=30, gate_bias=-1.0),
    epochs=60,
    snapshots=6,
    seed=0,
    threads=1,
)


def write_table(path: Path) -> None:
    """Write scikit-learn's breast cancer data (569 tumours) as a CSV file, with names of columns and classes."""
    data = load_breast_cancer()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*data.feature_names, "diagnosis"])
        for row, target in zip(data.data, data.target, strict=True):
            writer.writerow([*(f"{value:g}" for value in row), data.target_names[target]])


def train_on_table(folder: Path) -> Run:
    write_table(folder / "breast-cancer.csv")
    data = DataConfig(str(folder / "breast-cancer.csv"), target=("diagnosis",))
    return train(replace(TABLE, data=data), folder / "breast-cancer", progress=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*list_pretrained(), "breast-cancer"]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(names)}; by default, all")
    chosen = parser.parse_args().names or names
    if unknown := set(chosen) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(names)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            is_table = name == "breast-cancer"
            run = train_on_table(Path(folder)) if is_table else Run.load(f"pretrained:{name}")
            write_explore(run, path := FOLDER / f"{name}.html")
            size = path.stat().st_size
            print(f"{path.name}: {size / 1e6:.2f} MB", flush=True)
            if size > LIMIT:
                raise SystemExit(f"{path.name} is larger than {LIMIT / 1e6:g} MB")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        raise SystemExit(str(error)) from error
