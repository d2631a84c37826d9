"""Runs for the tests of the interactive page: a small table with every kind of column, and hostile names."""

from pathlib import Path

import numpy as np

from verydeep.data import DataConfig
from verydeep.training import ModelConfig, OptimConfig, Run, TrainConfig, train

EVIL = "</script><script>document.title = 'taken'</script>"
COLUMNS = ("size", "<img src=x onerror=alert(1)>", "sold", "new", "share")


def table_run(folder: Path, target: str = "class", **options: object) -> Run:
    """Train on a table whose class, column and category names try to become markup."""
    random = np.random.default_rng(0)
    lines = [",".join(("class", "price", "a", "b", *(f'"{name}"' for name in COLUMNS)))]
    for _ in range(200):
        size, colour = random.uniform(0, 10), random.choice(["red", EVIL, "blue"])
        day, new = np.datetime64("2020-01-01") + int(random.integers(0, 800)), bool(random.random() < 0.5)
        kind = EVIL if size + 3 * (colour == "red") > 6 else "fine"
        cells = ("" if random.random() < 0.1 else f"{size:.2f}", "" if random.random() < 0.1 else colour)
        labels = int(size > 4), int(new)
        lines.append(f"{kind},{100 * size:.1f},{labels[0]},{labels[1]},{cells[0]},{cells[1]},{day},{new},{size:.1f}%")
    path = folder / "homes.csv"
    path.write_text("\n".join(lines))
    others = {"class", "price", "a", "b"} - set(target.split(","))
    data = DataConfig(str(path), target=tuple(target.split(",")), ignore=tuple(sorted(others)), **options)  # type: ignore[arg-type]
    model, optim = ModelConfig(depth=4, width=8), OptimConfig(lr=0.1)
    config = TrainConfig(data, model, optim, epochs=3, batch_size=20, threads=1, snapshots=1)
    return train(config, folder / "table", progress=False)
