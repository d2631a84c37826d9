"""The trained networks that come with verydeep: `python benchmarks/pretrained.py`.

    python benchmarks/pretrained.py                       measure the accuracy of each again, from its files
    python benchmarks/pretrained.py add RUN NAME          add the network of a finished run as pretrained/NAME, with the
                                                          layers that it uses
    python benchmarks/pretrained.py add RUN NAME --snapshots 0 1 2 5
                                                          the same, with its weights after these epochs

The layers used are stored with each network, so that reports and interactive pages need not count them again.
Snapshots are rounded to a byte per weight. The accuracies are written to results/benchmarks/pretrained.json, beside
those that training recorded; those of snapshots show what the rounding costs.
"""

import argparse
import json
import shutil
from pathlib import Path

from _result import write_result

from verydeep.analysis import DepthUsage, load_result
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.report import find_usage, usage_samples
from verydeep.training import PREFIX, Run, evaluate, list_pretrained, load_data, load_own
from verydeep.training.run._snapshots import save_rounded_snapshot

ROOT = Path(__file__).parents[1]
FILES = ("config.json", "data.json", "environment.json", "metrics.jsonl", "model.safetensors", "summary.json")


def add(folder: Path, name: str, snapshots: list[int]) -> None:
    """Copy what a run needs to predict and to be examined, and some of its snapshots."""
    run = Run.load(folder)
    if run.summary is None:
        raise SystemExit(f"{folder} has not finished")
    target = ROOT / "pretrained" / name
    target.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        shutil.copy(folder / file, target / file)
    shutil.rmtree(target / "snapshots", ignore_errors=True)
    for epoch in snapshots:
        save_rounded_snapshot(target, epoch, run.model_at(epoch).state_dict())
    count_layers(run, target / "analysis")
    for file in (target / "analysis").glob("usage.*[!z]"):  # the pictures
        file.unlink()
    environment = json.loads((folder / "environment.json").read_text())
    environment.pop("command", None)  # it names folders of this machine
    write_atomic(target / "environment.json", json.dumps(environment, indent=1) + "\n")


def count_layers(run: Run, folder: Path) -> DepthUsage:
    return find_usage(run, usage_samples(run, load_own(run)), None, folder)


def measure(name: str) -> dict[str, object]:
    run = Run.load(f"{PREFIX}{name}")
    recorded = run.measured
    assert recorded is not None
    data = load_data(run)
    saved = load_result(run.path / "analysis" / "usage.npz", DepthUsage)
    used = count_layers(run, run.path / "analysis")
    found = evaluate(run.model, data)
    kilobytes = sum(file.stat().st_size for file in (ROOT / "pretrained" / name).rglob("*")) / 1000
    recorded_at = {line.epoch: line.test_accuracy for line in run.metrics}
    snapshots = {
        epoch: {
            "test_accuracy": evaluate(run.model_at(epoch), data).score,
            "recorded_test_accuracy": recorded_at.get(epoch),
        }
        for epoch in run.snapshots
    }
    return {
        "data": run.config.data.source,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "kilobytes": round(kilobytes),
        "test_accuracy": found.score,
        "recorded_test_accuracy": recorded.test_accuracy,
        "epochs": len(run.metrics),
        "layers_used": len(used.kept),
        "layers_used_as_stored": used.greedy.key == saved.greedy.key,
        "snapshots": snapshots,
        "seed": run.config.seed,
        "trained_on": read_json(run.path / "environment.json"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", nargs="*", metavar="add RUN NAME")
    parser.add_argument("--snapshots", nargs="+", type=int, default=[], metavar="EPOCH")
    options = parser.parse_args()
    words = options.arguments
    if words:
        if len(words) != 3 or words[0] != "add":
            parser.error("expected: add RUN NAME")
        add(Path(words[1]), words[2], options.snapshots)
        return
    found = {name: measure(name) for name in list_pretrained()}
    for name, values in found.items():
        print(f"{name}: {values['test_accuracy']:.2%}, recorded {values['recorded_test_accuracy']:.2%}")
    write_result(ROOT / "results" / "benchmarks" / "pretrained.json", {"networks": found})


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        raise SystemExit(str(error)) from error
