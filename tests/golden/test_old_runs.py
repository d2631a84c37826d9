"""Runs written by version 0.1.0 stay useful: each is copied and handed to every command that takes a run."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from verydeep.config import dotted, to_dict

from . import _api
from ._recorded import TOLERANCE, check

FIXTURES = Path(__file__).parents[1] / "fixtures" / "runs-0.1.0"
FINISHED = ["fully-connected", "own-table/seed-5", "own-table/seed-6"]
RUNS = [*FINISHED, "convolutional"]
SOME = ("--samples", 100, "--split", "train")  # for speed


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, as the working directory: the path of flowers.csv is relative to it."""
    shutil.copytree(FIXTURES, tmp_path / "runs")
    monkeypatch.chdir(tmp_path / "runs")
    return tmp_path / "runs"


def test_they_are_listed_with_their_status(runs: Path) -> None:
    assert _api.statuses(runs) == dict.fromkeys(FINISHED, "finished") | {"convolutional": "interrupted"}


@pytest.mark.parametrize("name", RUNS)
def test_they_are_read(runs: Path, name: str) -> None:
    run = _api.read(runs / name)
    assert run.config.optim.momentum == 0.9
    assert run.config.device == "cpu"
    assert len(run.metrics) == {"convolutional": 1, "fully-connected": 5}.get(name, 8)
    assert run.model.highway_depth == {"convolutional": 8, "fully-connected": 9}.get(name, 4)


@pytest.mark.parametrize("name", ["fully-connected", "convolutional", "own-table"])
@pytest.mark.filterwarnings("ignore:.*is now called:FutureWarning")  # two settings have new names since
def test_their_configuration_files_mean_the_same(runs: Path, name: str) -> None:
    settings = dotted(to_dict(_api.read_settings(runs / f"{name}.toml")))
    config = dotted(to_dict(_api.read(runs / (f"{name}/seed-5" if name == "own-table" else name)).config))
    given = {key: value for key, value in settings.items() if value is not None}  # others are chosen for the data
    assert given == {key: config[key] for key in given}


@pytest.mark.parametrize("name", RUNS)
def test_evaluation_gives_the_accuracy_of_their_metrics(runs: Path, name: str) -> None:
    found, measured = _api.evaluate(runs / name), _api.read(runs / name).measured
    assert found["samples"] == (30 if name.startswith("own-table") else 359)
    assert measured is not None
    assert found["loss"] == pytest.approx(measured.test_loss, rel=TOLERANCE)
    assert found["accuracy"] == pytest.approx(measured.test_accuracy, abs=1.5 / found["samples"])


def test_the_interrupted_one_ends_as_if_it_had_not_been(runs: Path, request: pytest.FixtureRequest) -> None:
    record = request.config.getoption("--record-golden")
    check(FIXTURES / "expected.json", "convolutional", _api.resume(runs / "convolutional"), record=record)


def test_those_that_have_ended_are_not_trained_again(runs: Path) -> None:
    before = {name: _api.outcome(runs / name) for name in FINISHED}
    assert _api.resume(runs / "fully-connected") == before["fully-connected"]
    assert "100.00 (98.33 ± 2.36)" in _api.resume_seeds(runs / "own-table")
    assert {name: _api.outcome(runs / name) for name in FINISHED} == before


@pytest.mark.slow
def test_the_analysis_of_then_is_found_again(runs: Path) -> None:
    then = _api.findings(runs / "fully-connected")
    _api.analyze(runs / "fully-connected", "--samples", 300, "--split", "train")
    now = _api.findings(runs / "fully-connected")
    assert then.gates is not None
    assert then.lesions is not None
    assert then.usage is not None
    assert then.routing is not None
    assert now.gates is not None
    assert now.lesions is not None
    assert now.lesions.layers == then.lesions.layers
    np.testing.assert_allclose(now.lesions.loss, then.lesions.loss, rtol=TOLERANCE)
    for gates, earlier in zip(now.gates.mean, then.gates.mean, strict=True):
        np.testing.assert_allclose(gates, earlier, rtol=TOLERANCE, atol=1e-6)
    assert len(then.flow) == len(now.flow) == 3


@pytest.mark.parametrize("name", ["convolutional", "own-table/seed-5"])
def test_they_are_analysed(runs: Path, name: str) -> None:
    _api.analyze(runs / name, *SOME, "--only", "lesions")
    lesions = _api.findings(runs / name).lesions
    assert lesions is not None
    assert len(lesions.layers) == _api.read(runs / name).model.highway_depth


@pytest.mark.parametrize("name", ["fully-connected", "convolutional", "own-table/seed-5"])
def test_they_are_pruned(runs: Path, name: str) -> None:
    found = _api.prune(runs / name, "50%", runs / "smaller")
    assert len(found["kept"]) < len(found["layers"])
    assert _api.read(runs / "smaller").model.highway_depth == len(found["kept"])
    assert _api.statuses(runs)["smaller"] == "pruned"


@pytest.mark.parametrize("name", ["fully-connected", "convolutional", "own-table/seed-5"])
def test_they_are_reported(runs: Path, name: str) -> None:
    if not (runs / name / "analysis").exists():
        _api.analyze(runs / name, *SOME, "--only", "lesions")
    page = _api.report(runs / name)
    assert "highway" in page
    assert "</html>" in page


def test_a_table_that_was_moved_is_pointed_at(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (runs / "elsewhere").mkdir()
    moved = (runs / "flowers.csv").rename(runs / "elsewhere" / "flowers.csv")
    assert _api.evaluate(runs / "own-table" / "seed-5", moved)["samples"] == 150
    monkeypatch.chdir(moved.parent)  # or the command is run where the relative path leads to it
    assert _api.evaluate(runs / "own-table" / "seed-5")["samples"] == 30
