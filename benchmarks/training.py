"""Train shipped configurations and record the results: `python benchmarks/training.py highway50-mnist ...`.

Each run is a folder in runs/results/ and continues if it was interrupted. Its configuration, environment, metrics and
summary are written to results/training/NAME.json, and the curves of all results there to results/training/curves.png.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verydeep.config import to_dict
from verydeep.files import write_atomic
from verydeep.report import plot_curves
from verydeep.training import Run, make_progress, read_config, resume, train

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "training"


def trained(name: str) -> Run:
    folder = ROOT / "runs" / "results" / name
    progress = make_progress(quiet=False)
    if (folder / "config.json").exists():
        return resume(folder, progress=progress)
    return train(read_config(name), folder, progress=progress)


def record(run: Run) -> dict[str, Any]:
    return {
        "command": f"python benchmarks/training.py {run.path.name}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": to_dict(run.config),
        "environment": json.loads((run.path / "environment.json").read_text()),
        "summary": run.summary and run.summary.to_dict(),
        "metrics": [line.to_dict() for line in run.metrics],
    }


def main() -> None:
    for name in sys.argv[1:]:
        write_atomic(RESULTS / f"{name}.json", json.dumps(record(trained(name)), indent=1) + "\n")
    curves = {file.stem: json.loads(file.read_text())["metrics"] for file in sorted(RESULTS.glob("*.json"))}
    plot_curves(curves, RESULTS / "curves.png", metric="train_loss", log=True)


if __name__ == "__main__":
    main()
