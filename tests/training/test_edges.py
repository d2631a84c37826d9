"""Corners of training that are easy to get wrong."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from verydeep.data import DataConfig, Dataset, Split
from verydeep.errors import UserError
from verydeep.training import (
    Interrupt,
    Interrupted,
    ModelConfig,
    OptimConfig,
    ProcessGroup,
    Run,
    TrainConfig,
    TrainingProgress,
    make_model,
    resume,
    train,
)
from verydeep.training._trainer import Trainer
from verydeep.training.run._run_data import fingerprint


class Warnings(TrainingProgress):
    def __init__(self) -> None:
        self.messages: list[str] = []

    def warn(self, message: str) -> None:
        self.messages.append(message)


def classifier(**options: Any) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 16, **options), nn.Tanh(), nn.Linear(16, 3, **options))


@pytest.mark.parametrize("batch_size", [10, 1000])
def test_a_wish_to_stop_is_heard_also_when_an_epoch_is_one_batch(
    batch_size: int, tiny: Dataset, configure: Any, tmp_path: Path
) -> None:
    config: TrainConfig = configure(batch_size=batch_size, epochs=3, optim=OptimConfig(lr=0.01))
    run = Run.create(tmp_path / "run", config, make_model(config, tiny), {})
    trainer = Trainer(run, make_model(config, tiny), tiny, ProcessGroup(0, 1, torch.device("cpu")), TrainingProgress())
    interrupt = Interrupt()
    interrupt.requested = True
    assert trainer.fit(interrupt) == "interrupted"
    assert trainer.state.position.epoch < 3


def test_divergence_in_the_very_last_update_is_noticed(unvalidated: Dataset, configure: Any, tmp_path: Path) -> None:
    config = configure(batch_size=1000, epochs=1, optim=OptimConfig(lr=1e38))
    run = train(config, tmp_path / "run", dataset=unvalidated)
    assert run.summary is not None
    assert run.summary.status == "diverged"
    assert not (run.path / "model.safetensors").exists()


def test_a_module_of_one_s_own_may_tie_weights(unvalidated: Dataset, configure: Any, tmp_path: Path) -> None:
    def tied() -> nn.Module:
        model = nn.Sequential(nn.Flatten(), nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 3))
        model[2].weight = model[1].weight
        return model

    run = train(configure(), tmp_path / "run", model=tied(), dataset=unvalidated)
    assert run.summary is not None
    losses = [line.to_dict()["loss"] for line in run.metrics]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_module_of_one_s_own_may_have_another_type(
    dtype: torch.dtype, tiny: Dataset, configure: Any, tmp_path: Path
) -> None:
    class Cast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = classifier(dtype=dtype)

        def forward(self, x: torch.Tensor) -> Any:
            return self.inner(x.to(dtype))

    run = train(configure(), tmp_path / "run", model=Cast(), dataset=tiny)
    losses = [line.to_dict()["loss"] for line in run.metrics]
    assert losses[-1] < losses[0]


def test_a_module_that_cannot_be_trained_says_why(tiny: Dataset, configure: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to train"):
        train(configure(), tmp_path / "frozen", model=classifier().requires_grad_(False), dataset=tiny)
    narrow = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    with pytest.raises(UserError, match=r"logits of shape \(batch, 3\), one per class; got \(10, 2\)"):
        train(configure(), tmp_path / "narrow", model=narrow, dataset=tiny)


@pytest.mark.parametrize("validated", [True, False])
def test_a_diverged_epoch_is_not_the_measured_one(
    validated: bool, tiny: Dataset, unvalidated: Dataset, configure: Any, tmp_path: Path
) -> None:
    """The loss explodes in the last step of the second epoch, and stays a number."""

    class Explodes(nn.Module):
        steps = 0

        def __init__(self) -> None:
            super().__init__()
            self.inner = classifier()

        def forward(self, x: torch.Tensor) -> Any:
            self.steps += self.training
            return self.inner(x) * (-1e6 if self.steps == 24 else 1.0)  # what was right is very wrong

    run = train(configure(), tmp_path / "run", model=Explodes(), dataset=tiny if validated else unvalidated)
    assert run.summary is not None
    assert run.summary.status == "diverged"
    assert [line.loss is not None and math.isfinite(line.loss) for line in run.metrics] == [True, True]
    assert run.measured == run.metrics[0]


def test_weights_that_diverged_are_not_the_best(tiny: Dataset, configure: Any, tmp_path: Path) -> None:
    run = train(configure(batch_size=1000, epochs=1, optim=OptimConfig(lr=1e38)), tmp_path / "run", dataset=tiny)
    assert run.summary is not None
    assert run.summary.status == "diverged"
    assert not (run.path / "model.safetensors").exists()
    assert run.measured is None


def test_bytes_are_refused_by_networks_before_anything_is_written(configure: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="use 'scale'"):
        train(configure(data=DataConfig("digits", preprocess="none")), tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


def test_what_people_put_beside_checkpoints_is_left_alone(tiny: Dataset, configure: Any, tmp_path: Path) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    newest = max((run.path / "checkpoint").glob("*.safetensors"))
    copy = newest.with_name(f"{newest.stem} (copy).safetensors")
    copy.write_bytes(b"anything")
    interrupted(run.path)
    resume(run.path, dataset=tiny)
    assert copy.read_bytes() == b"anything"


def test_the_sample_of_a_huge_set_lies_within_it() -> None:
    """16,777,219 is no float32, and the nearest is beyond the last row."""
    rows = 16_777_220
    x, y = torch.zeros(1, 1).expand(rows, 1), torch.zeros(1, dtype=torch.int64).expand(rows)
    few = Split(torch.zeros(2, 1), torch.zeros(2, dtype=torch.int64))
    assert fingerprint(Dataset("huge", Split(x, y), None, few, ("a", "b")))["train"] == rows


def interrupted(run: Path) -> None:
    (run / "summary.json").unlink()


def test_damaged_metrics_are_named_by_their_line(tiny: Dataset, configure: Any, tmp_path: Path) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    (run.path / "metrics.jsonl").write_text("\n".join([lines[0], "garbage"]) + "\n")
    interrupted(run.path)
    with pytest.raises(UserError, match="line 2 is damaged"):
        resume(run.path, dataset=tiny)
    (run.path / "metrics.jsonl").write_bytes(lines[0].encode() + b"\n\xff\n")
    with pytest.raises(UserError, match="line 2 is damaged"):
        resume(run.path, dataset=tiny)


def test_what_is_not_as_it_was_is_said_when_a_run_goes_on(tiny: Dataset, configure: Any, tmp_path: Path) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    interrupted(run.path)
    before = json.loads((run.path / "environment.json").read_text())
    (run.path / "environment.json").write_text(json.dumps(before | {"threads": 64}))
    (run.path / "metrics.jsonl").write_text("")
    progress = Warnings()
    try:
        resume(run.path, dataset=tiny, progress=progress)
    except Interrupted:
        pytest.fail("nobody interrupted it")
    assert any("threads was 64 and is 1" in line for line in progress.messages)
    assert any("is missing 2 epochs" in line for line in progress.messages)
    assert "threads was 64 and is 1" in (run.path / "events.log").read_text()
    assert json.loads((run.path / "environment.json").read_text())["threads"] == 1


def test_a_run_without_its_checkpoints_says_that_it_starts_again(tiny: Dataset, configure: Any, tmp_path: Path) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    before = run.metrics
    interrupted(run.path)
    for checkpoint in (run.path / "checkpoint").iterdir():
        checkpoint.unlink()
    progress = Warnings()
    again = resume(run.path, dataset=tiny, progress=progress)
    assert any("starts again from the beginning" in line for line in progress.messages)
    assert [line.loss for line in again.metrics] == [line.loss for line in before]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("config.json", {"architecture": [1]}, "expected text as 'architecture'"),
        ("config.json", {"own": 5}, "expected a list of texts as 'own'"),
        ("config.json", {"data": 5}, "expected a table as 'data'"),
        ("summary.json", None, r"is damaged \(.*; remove it"),
    ],
)
def test_files_edited_by_hand_are_refused_by_name(
    name: str, change: Any, words: str, tiny: Dataset, configure: Any, tmp_path: Path
) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    saved = json.loads((run.path / name).read_text())
    (run.path / name).write_text(json.dumps(saved | change if change else {}))
    with pytest.raises(UserError, match=words):
        resume(run.path, dataset=tiny)


def test_another_optimiser_than_the_checkpoint_s_is_refused(tiny: Dataset, configure: Any, tmp_path: Path) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    interrupted(run.path)
    saved = json.loads((run.path / "config.json").read_text())
    saved["training"]["optim"]["name"] = "adam"
    (run.path / "config.json").write_text(json.dumps(saved))
    with pytest.raises(UserError, match="holds the state of SGD, the configuration says AdamW"):
        resume(run.path, dataset=tiny)


@pytest.mark.slow
def test_what_the_machine_does_not_have_is_said_in_a_line(tiny: Dataset, configure: Any, tmp_path: Path) -> None:
    for changes, words in (
        ({"device": "nonsense"}, "there is no device 'nonsense'"),
        ({"device": "meta"}, "device 'meta' cannot be used: it holds no values"),
        ({"model": ModelConfig(depth=3, width=30_000_000)}, "not enough memory: the weights of this network need"),
    ):
        with pytest.raises(UserError, match=words):
            train(configure(**changes), tmp_path / "run", dataset=tiny)
    with pytest.raises(UserError, match="threads must be from 1 to 1024"):
        configure(threads=99_999)
