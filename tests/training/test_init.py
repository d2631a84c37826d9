"""Trainings that start from the weights of another run."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.training import ModelConfig, OptimConfig, Run, TrainConfig, TrainingProgress, resume, train

Configure = Callable[..., TrainConfig]


class Notes(TrainingProgress):
    def __init__(self) -> None:
        self.messages: list[str] = []

    def note(self, message: str) -> None:
        self.messages.append(message)


@pytest.fixture
def parent(tiny: Dataset, configure: Configure, tmp_path: Path) -> Run:
    return train(configure(), tmp_path / "parent", dataset=tiny)


def frozen(configure: Configure, **changes: Any) -> TrainConfig:
    """A configuration whose training leaves the weights as they are."""
    return configure(epochs=1, seed=7, optim=OptimConfig(lr=1e-30, momentum=0.0), **changes)


@pytest.mark.parametrize("file", ["", "model.safetensors"])
def test_training_starts_from_exactly_these_weights(
    parent: Run, tiny: Dataset, configure: Configure, tmp_path: Path, file: str
) -> None:
    notes = Notes()
    run = train(frozen(configure, init=parent.path / file), tmp_path / "run", dataset=tiny, progress=notes)
    before, after = (load_file(each.path / "model.safetensors") for each in (parent, run))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    source = str(parent.path / file)
    assert notes.messages == [f"starting from the weights of {source}: all {len(before)} tensors"]
    assert notes.messages[0] in (run.path / "events.log").read_text()
    assert Run.load(run.path).config.init == source
    digest = hashlib.sha256((parent.path / "model.safetensors").read_bytes()).hexdigest()
    assert json.loads((run.path / "environment.json").read_text())["init"] == {"path": source, "sha256": digest}


def test_resuming_does_not_need_the_other_run(
    parent: Run, tiny: Dataset, configure: Configure, tmp_path: Path, stop_after: Any
) -> None:
    config = configure(init=str(parent.path), seed=3)
    once = train(config, tmp_path / "once", dataset=tiny)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", dataset=tiny, progress=stop_after(4))
    shutil.rmtree(parent.path)
    environment = tmp_path / "run" / "environment.json"
    environment.write_text(json.dumps(json.loads(environment.read_text()) | {"processor": "another"}))
    run = resume(tmp_path / "run", dataset=tiny)
    assert (run.path / "model.safetensors").read_bytes() == (once.path / "model.safetensors").read_bytes()
    assert "init" in json.loads(environment.read_text())  # although the machine was recorded anew


def test_a_run_that_was_killed_before_its_first_checkpoint_loads_the_weights_again(
    parent: Run, tiny: Dataset, configure: Configure, tmp_path: Path, stop_after: Any
) -> None:
    config = configure(init=str(parent.path), seed=3)
    once = train(config, tmp_path / "once", dataset=tiny)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", dataset=tiny, progress=stop_after(1))
    for checkpoint in (tmp_path / "run" / "checkpoint").iterdir():
        checkpoint.unlink()
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    run = resume(tmp_path / "run", dataset=tiny)
    assert (run.path / "model.safetensors").read_bytes() == (once.path / "model.safetensors").read_bytes()
    weights = {name: value + 1 for name, value in load_file(parent.path / "model.safetensors").items()}
    save_file(weights, parent.path / "model.safetensors")
    with pytest.raises(UserError, match="have changed since"):
        resume(tmp_path / "other", dataset=tiny)


def test_a_classifier_of_other_classes_starts_fresh(
    parent: Run, tiny: Dataset, configure: Configure, tmp_path: Path
) -> None:
    renamed = replace(tiny, classes=("x", "y", "z"))
    more = replace(tiny, classes=("a", "b", "c", "d"))
    for name, dataset in (("renamed", renamed), ("more", more)):
        notes = Notes()
        config = frozen(configure, init=str(parent.path))
        run = train(config, tmp_path / name, dataset=dataset, progress=notes)
        fresh = train(replace(config, init=None), tmp_path / f"{name}-fresh", dataset=dataset)
        before, after, own = (load_file(each.path / "model.safetensors") for each in (parent, run, fresh))
        for tensor in after:
            expected = own if tensor.startswith("classifier.") else before
            assert torch.allclose(after[tensor], expected[tensor], rtol=0, atol=1e-20)
        assert notes.messages[0].endswith(
            "not loaded, so initialised from the seed: classifier.weight, classifier.bias"
        )


def test_a_network_that_nothing_fits_is_an_error(
    parent: Run, tiny: Dataset, configure: Configure, tmp_path: Path
) -> None:
    wide = configure(model=ModelConfig(depth=3, width=7), init=str(parent.path))
    with pytest.raises(UserError, match="has the name and shape of one in the network"):
        train(wide, tmp_path / "run", dataset=replace(tiny, classes=("x", "y", "z")))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("init", "words"),
    [("nothing", "cannot read nothing"), ("empty", "no model.safetensors"), ("text", "cannot read text"),
     ("several", "choose one of them")],
)  # fmt: skip
def test_what_holds_no_weights_is_refused_in_a_line(
    tiny: Dataset, configure: Configure, tmp_path: Path, init: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("several").mkdir()
    Path("several/seeds.json").touch()
    Path("text").write_text("no tensors")
    with pytest.raises(UserError, match=words) as error:
        train(configure(init=init), "run", dataset=tiny)
    assert str(error.value).startswith("init: ")
    assert "\n" not in str(error.value)
