"""Every call into verydeep that the golden results need; a renamed function or option is changed here alone."""

import hashlib
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np
import torch

from verydeep import analysis, studies, training
from verydeep.cli import main
from verydeep.config import from_dict, to_toml

Values = dict[str, Any]


def machine() -> Values:
    """What decides the last bits of a result."""
    found = training.environment()
    features = llvm.get_host_cpu_features()
    return {
        "processor": f"{found['processor']} ({llvm.get_host_cpu_name()})",
        "features": " ".join(sorted(name for name, there in features.items() if there)),
        "torch": f"{found['torch']} ({torch.backends.cpu.get_cpu_capability()})",
        "numpy": np.__version__,
        "llvmlite": llvmlite.__version__,
    }


def train(settings: Values, folder: Path) -> Values:
    """Train in Python."""
    training.train(from_dict(training.TrainConfig, settings, "golden"), folder)
    return outcome(folder)


def train_by_command(settings: Values, folder: Path) -> Values:
    """Train with `verydeep train`."""
    _command("train", _toml(settings, folder), "--folder", folder, "--quiet")
    return outcome(folder)


def train_seeds(settings: Values, count: int, folder: Path) -> Values:
    """Train with `verydeep train --seeds`."""
    _command("train", _toml(settings, folder), "--seeds", count, "--folder", folder, "--quiet")
    found = studies.Seeds.load(folder)
    assert found.summary is not None
    names = ("measure", "runs", "best", "mean", "std")
    runs = {str(seed): outcome(run.path) for seed, run in found.runs.items()}
    return {"summary": {name: found.summary[name] for name in names}, "runs": runs}


def search(settings: Values, folder: Path) -> list[Values]:
    """Search with `verydeep search`, one worker; the settings, score and status of every trial."""
    _command("search", _toml(settings, folder), "--study", folder, "--jobs", 1, "--quiet")
    trials = json.loads(_command("search", "show", folder, "--json"))["trials"]
    return [{name: trial[name] for name in ("settings", "value", "status", "epochs")} for trial in trials]


def lesions(folder: Path) -> Values:
    """Close each layer of a run's network in turn."""
    run = training.Run.load(folder)
    study = analysis.lesion_study(run.model, training.load_data(run, split="train"), "train")
    return {
        "layers": list(study.layers),
        "samples": study.samples,
        "baseline": {"loss": study.baseline.loss, "error": study.baseline.error},
        "loss": study.loss.tolist(),
        "error": study.error.tolist(),
    }


def prune(folder: Path, tolerance: str, smaller: Path) -> Values:
    """Prune with `verydeep prune`."""
    options = ["--tolerance", tolerance, "--split", "valid", "--folder", smaller, "--json"]
    report = json.loads(_command("prune", folder, *options))
    names = ("layers", "kept", "chosen", "test", "parameters")
    return {name: report[name] for name in names} | outcome(smaller)


def outcome(folder: Path) -> Values:
    """The curves of a run, how it ended, and the digest of the weights it keeps."""
    run = training.Run.load(folder)
    assert run.summary is not None
    curves = [{name: value for name, value in line.to_dict().items() if name != "seconds"} for line in run.metrics]
    return {"status": run.summary.status, "curves": curves, "digest": _digest(run)}


def resume(folder: Path) -> Values:
    """Continue a run with `verydeep train --resume`."""
    _command("train", "--resume", folder, "--quiet")
    return outcome(folder)


def resume_seeds(folder: Path) -> str:
    """Continue the runs of several seeds; what the command says in the end."""
    return _command("train", "--resume", folder)


def statuses(folder: Path) -> dict[str, str]:
    """What `verydeep runs` lists."""
    return {run["name"]: run["status"] for run in json.loads(_command("runs", folder, "--json"))}


def read(folder: Path) -> training.Run:
    """A run's folder, in Python."""
    return training.Run.load(folder)


def read_settings(file: Path) -> training.TrainConfig:
    """A configuration file."""
    return training.read_config(file)


def evaluate(folder: Path, data: Path | None = None) -> Values:
    """Measure a run's network with `verydeep eval`, on its own test samples or on other data."""
    found = json.loads(_command("eval", folder, *(() if data is None else ("--data", data)), "--json"))
    return {name: found[name] for name in ("samples", "loss", "accuracy")}


def analyze(folder: Path, *options: object) -> None:
    """Look inside a run's network with `verydeep analyze`."""
    _command("analyze", folder, *options, "--json")


def findings(folder: Path) -> analysis.Findings:
    """What `verydeep analyze` left in a run's folder."""
    return analysis.load_findings(folder / "analysis")


def report(folder: Path) -> str:
    """The page that `verydeep report` writes."""
    _command("report", folder)
    return (folder / "report.html").read_text()


def _digest(run: training.Run) -> str:
    """SHA-256 over the bytes of all weights, in the order of their names."""
    digest = hashlib.sha256()
    for _, value in sorted(run.model.state_dict().items()):
        digest.update(value.float().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _toml(settings: Values, folder: Path) -> Path:
    path = folder.with_suffix(".toml")
    path.write_text(to_toml(settings))
    return path


def _command(*arguments: object) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main([str(argument) for argument in arguments])
    assert code == 0, printed.getvalue()
    return printed.getvalue()
