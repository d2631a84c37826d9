"""The trained networks that come with the package."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from verydeep.analysis import DepthUsage, highway_layers, load_result
from verydeep.cli import main
from verydeep.errors import UserError
from verydeep.training import Run, TrainConfig, list_pretrained, load_initial_weights
from verydeep.training.run._pretrained import _folders

NAMES = list_pretrained()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "verydeep" / "pretrained"


@pytest.mark.parametrize("name", NAMES)
def test_every_network_predicts_and_knows_how_good_it_is(name: str) -> None:
    run = Run.load(f"pretrained:{name}")
    shape = run.model.config.input_shape
    assert len(run.predict(torch.zeros(3, *shape, dtype=torch.uint8).numpy())) == 3
    assert run.summary is not None
    assert run.measured is not None
    assert 0.85 < (run.measured.test_accuracy or 0) < 1


@pytest.mark.parametrize("name", NAMES)
def test_the_layers_used_are_stored_with_every_network(name: str) -> None:
    run = Run.load(f"pretrained:{name}")
    usage = load_result(run.path / "analysis" / "usage.npz", DepthUsage)
    assert usage.greedy.layers == highway_layers(run.model)
    assert usage.greedy.key
    assert (usage.split, usage.greedy.samples) == ("train", 60_000)
    assert run.measured is not None
    assert 1 - usage.greedy.error[0] > (run.measured.test_accuracy or 1)  # it knows the training samples better


def test_the_networks_are_small() -> None:
    files = [file for folder in _folders().values() for file in folder.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 5e6


def test_one_remembers_how_it_learned() -> None:
    run = Run.load("pretrained:highway50-mnist")
    assert run.snapshots == [0, 1, 3, 5]
    started, later = run.model_at(0).classifier, run.model_at(5).classifier
    assert started is not None
    assert later is not None
    assert (later.weight - started.weight).abs().max() > 0.05


def test_what_is_written_into_a_run_goes_into_a_copy(cache: Path) -> None:
    run = Run.load("pretrained:highway50-mnist")
    assert run.path.parent == cache
    (run.path / "note.txt").write_text("mine")
    assert (Run.load("pretrained:highway50-mnist").path / "note.txt").read_text() == "mine"
    assert not (_folders()["highway50-mnist"] / "note.txt").exists()
    assert [path.name for path in cache.iterdir()] == [run.path.name]


def test_other_weights_of_the_same_name_are_another_copy(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Run.load("pretrained:highway50-mnist").path
    newer = cache.parent / "newer"
    shutil.copytree(_folders()["highway50-mnist"], newer / "highway50-mnist")
    (newer / "highway50-mnist" / "snapshots" / "000005.safetensors").unlink()
    monkeypatch.setattr("verydeep.training.run._pretrained._PLACES", (newer,))
    assert Run.load("pretrained:highway50-mnist").path != first


def test_a_misspelt_name_and_a_cache_that_cannot_be_written_are_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match="unknown pretrained network 'highway50-mnst'; did you mean 'highway50-mnist'"):
        Run.load("pretrained:highway50-mnst")
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert main(["eval", "pretrained:highway50-mnist"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_training_can_start_from_one() -> None:
    model = Run.load("pretrained:highway50-mnist").model
    assert model.classifier is not None
    torch.nn.init.zeros_(model.classifier.weight)
    found = load_initial_weights(model, "pretrained:highway50-mnist", ())
    assert not found.unused
    assert model.classifier.weight.abs().sum() == 0  # that of other classes is left out
    assert TrainConfig(init="pretrained:highway50-mnist").init == "pretrained:highway50-mnist"


def test_commands_take_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    samples = torch.randint(0, 256, (20, 1, 28, 28), dtype=torch.uint8).numpy()
    np.savez("samples.npz", x=samples)
    assert main(["predict", "pretrained:highway50-mnist", "samples.npz", "-o", "answers.csv"]) == 0
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 21
    assert main(["models"]) == 0
    assert "pretrained:highway50-mnist" in capsys.readouterr().out
