"""Runs of networks without highway layers, from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

from verydeep.cli import main
from verydeep.data import DataConfig
from verydeep.models import MLP
from verydeep.training import ModelConfig, Run, TrainConfig, resume, train

every = pytest.mark.parametrize("depth", [0, 1])
OPTIONS = ["--width", "8", "--epochs", "2", "--threads", "1"]


def start(folder: Path, depth: int, *options: str) -> Run:
    command = ["train", "digits", "--depth", str(depth), *OPTIONS, "--folder", str(folder), *options]
    assert main(command) == 0
    return Run.load(folder)


@every
@pytest.mark.parametrize("options", [(), ("--model", "plain-mlp"), ("--optim", "muon"), ("--optim", "adam")], ids=str)
def test_a_shallow_network_learns(depth: int, options: tuple[str, ...], tmp_path: Path) -> None:
    run = start(tmp_path / "run", depth, *options)
    assert isinstance(run.model, MLP)
    assert (run.model.input is None, run.model.stack) == (depth == 0, None)
    first, last = (metrics.loss for metrics in run.metrics)
    assert last is not None
    assert first is not None
    assert last < first


def test_the_summary_calls_depth_0_a_linear_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start(tmp_path / "0", 0)
    assert "a linear model, 650 parameters" in capsys.readouterr().out
    start(tmp_path / "1", 1)
    assert "1 hidden layer, 8 units each, 610 parameters" in capsys.readouterr().out


def test_the_summary_promises_no_early_end_after_more_epochs_than_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for patience, is_promised in (("1", True), ("2", False)):
        start(tmp_path / patience, 0, "--validation", "0.2", "--patience", patience)
        assert ("stops early after" in capsys.readouterr().out) == is_promised


@pytest.mark.slow
@every
def test_a_shallow_run_is_evaluated_listed_reported_and_not_pruned(
    depth: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = start(tmp_path / "run", depth)
    assert main(["eval", str(run.path)]) == 0
    assert main(["report", str(run.path)]) == 0
    page = (run.path / "report.html").read_text()
    assert f"highway-mlp, {depth} hidden layer{'' if depth == 1 else 's'}" in page
    assert "This network has no highway or residual layers" in page
    capsys.readouterr()
    assert main(["runs", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["depth"] == depth
    assert main(["compare", str(run.path), str(start(tmp_path / "other", 2).path)]) == 0
    capsys.readouterr()
    assert main(["prune", str(run.path)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("verydeep: the forward pass of this MLP uses no highway layers")
    assert main(["analyze", str(run.path)]) == 0
    assert "no highway layers and no residual blocks, so there is nothing to close" in capsys.readouterr().err


@pytest.mark.slow
@every
def test_a_shallow_run_predicts_and_is_exported(depth: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'yes' if a > b else 'no'}" for a, b in rng.normal(size=(120, 2))]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["a,b,answer", *rows]) + "\n")
    folder = str(tmp_path / "run")
    options = ["--target", "answer", "--depth", str(depth), "--threads", "1", "--folder", folder]
    assert main(["train", str(table), *options]) == 0
    capsys.readouterr()
    assert main(["predict", folder, str(table), "--out", str(tmp_path / "answers.csv")]) == 0
    answers = [line.split(",")[0] for line in (tmp_path / "answers.csv").read_text().splitlines()[1:]]
    truth = [row.rsplit(",", 1)[1] for row in rows]
    assert np.mean([a == b for a, b in zip(answers, truth, strict=True)]) > 0.9
    assert main(["export", folder, "--onnx", str(tmp_path / "net.onnx")]) == 0
    assert (tmp_path / "net.onnx").exists()


def test_a_negative_depth_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "digits", "--depth", "-1", "--folder", str(tmp_path / "run")]) == 2
    assert "depth is the number of hidden layers, and must be at least 0; got -1" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["highway-conv", "plain-conv"])
def test_the_depth_of_convolutional_networks_can_be_given(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "digits", "--model", name, "--epochs", "1", "--width", "2", "--threads", "1"]
    assert main([*command, "--depth", "5", "--folder", str(tmp_path / "run")]) == 0
    assert "  5 hidden layers, " in capsys.readouterr().out
    assert Run.load(tmp_path / "run").model.config.depth == 5
    assert main([*command, "--depth", "1", "--folder", str(tmp_path / "other")]) == 2
    assert "depth must be at least 2 for images of shape (1, 8, 8)" in capsys.readouterr().err


def test_a_resumed_run_has_the_network_of_its_folder(tmp_path: Path) -> None:
    """Earlier versions counted the classifier of highway-conv in its depth."""
    config = TrainConfig(DataConfig("digits"), ModelConfig("highway-conv", depth=4, width=2), epochs=1, threads=1)
    run = train(config, tmp_path / "run", progress=False)
    before = run.model.config
    saved = json.loads((run.path / "config.json").read_text())
    saved["training"]["model"]["depth"] = 5
    (run.path / "config.json").write_text(json.dumps(saved))
    again = resume(run.path, epochs=2, progress=False)
    assert again.model.config == before
    assert len(again.metrics) == 2
