"""Runs that go on for more epochs than they were started with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verydeep.cli import main
from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.training import (
    DistillConfig,
    EpochMetrics,
    OptimConfig,
    Run,
    ScheduleConfig,
    TrainConfig,
    TrainingProgress,
    derive_run,
    resume,
    train,
)

Configure = Callable[..., TrainConfig]


class Notes(TrainingProgress):
    def __init__(self) -> None:
        self.messages: list[str] = []

    def note(self, message: str) -> None:
        self.messages.append(message)


def outcome(run: Run) -> tuple[list[dict[str, Any]], bytes, Any]:
    """Everything that a run measured and learnt, but not how long it took."""
    lines = [{name: value for name, value in line.to_dict().items() if name != "seconds"} for line in run.metrics]
    summary = run.summary
    assert summary is not None
    return lines, (run.path / "model.safetensors").read_bytes(), (summary.status, summary.epochs)


@pytest.mark.parametrize(
    "schedule", [ScheduleConfig(), ScheduleConfig("exponential", 0.8), ScheduleConfig("multistep", 0.5, (1, 3))]
)
def test_a_finished_run_goes_on_to_the_bits_of_one_long_run(
    tiny: Dataset, configure: Configure, tmp_path: Path, schedule: ScheduleConfig
) -> None:
    config = configure(schedule=schedule, ema_half_life=1.0, optim=OptimConfig(lr=0.1, momentum=0.9))
    run, notes = train(config, tmp_path / "run", dataset=tiny), Notes()
    longer = resume(run, epochs=4, dataset=tiny, progress=notes)
    once = train(configure(**{**vars(config), "epochs": 4}), tmp_path / "once", dataset=tiny)
    assert outcome(longer) == outcome(once)
    assert notes.messages == []
    assert longer.config == Run.load(run.path).config == once.config
    assert "continued to 4 epochs instead of 2" in (run.path / "events.log").read_text()


@pytest.mark.parametrize("stop", ["change_config", "append"])
def test_going_on_may_be_killed_at_any_time(
    tiny: Dataset, configure: Configure, tmp_path: Path, stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        # Once between the removal of the summary and the new configuration, once in the first of the new epochs.
        target = "Run.append" if stop == "append" else "run._run.write_atomic"
        patch.setattr(f"verydeep.training.{target}", killed)
        with pytest.raises(KeyboardInterrupt):
            resume(run.path, epochs=3, dataset=tiny)
    assert not (run.path / "summary.json").exists()
    same = resume(run.path, dataset=tiny)
    assert same.summary is not None
    assert same.summary.epochs == (2 if stop == "change_config" else 3)
    once = train(configure(epochs=3), tmp_path / "once", dataset=tiny)
    assert outcome(resume(run.path, epochs=3, dataset=tiny)) == outcome(once)


def test_schedules_over_all_epochs_are_stretched_and_a_line_says_so(
    tiny: Dataset, configure: Configure, tmp_path: Path
) -> None:
    run, notes = train(configure(schedule=ScheduleConfig("cosine")), tmp_path / "run", dataset=tiny), Notes()
    assert run.metrics[-1].lr < 0.01
    longer = resume(run.path, epochs=4, dataset=tiny, progress=notes)
    assert longer.metrics[2].lr > 2 * run.metrics[1].lr
    assert [line.partition(":")[0] for line in notes.messages] == [
        "the cosine learning rate is stretched over 4 epochs"
    ]
    assert notes.messages[0] in (run.path / "events.log").read_text()


def test_the_weight_of_a_teacher_is_stretched_too(tiny: Dataset, configure: Configure, tmp_path: Path) -> None:
    teacher, notes = train(configure(), tmp_path / "teacher", dataset=tiny), Notes()
    config = configure(distill=DistillConfig(str(teacher.path)))
    student = train(config, tmp_path / "student", dataset=tiny)
    resume(student, epochs=3, dataset=tiny, progress=notes)
    assert notes.messages[0].startswith("the weight of the teacher is stretched over 3 epochs")


def test_an_unfinished_run_may_change_its_total(
    tiny: Dataset, configure: Configure, tmp_path: Path, stop_after: Any
) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(configure(epochs=5), tmp_path / "run", dataset=tiny, progress=stop_after(15))
    once = train(configure(), tmp_path / "once", dataset=tiny)
    assert outcome(resume(tmp_path / "run", epochs=2, dataset=tiny)) == outcome(once)


def test_fewer_epochs_than_done_are_refused_and_as_many_change_nothing(
    tiny: Dataset, configure: Configure, tmp_path: Path
) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    before = {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file()}
    with pytest.raises(UserError, match=r"^epochs = 1, but \S+ has already completed 2 epochs$"):
        resume(run, epochs=1, dataset=tiny)
    assert resume(run, epochs=2, dataset=tiny).config == run.config
    assert {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file()} == before


def test_patience_starts_anew_in_a_run_that_stopped_early(tiny: Dataset, configure: Configure, tmp_path: Path) -> None:
    config = configure(epochs=9, patience=2, optim=OptimConfig(lr=1e-9))  # nothing improves
    run = train(config, tmp_path / "run", dataset=tiny)
    assert outcome(run)[2] == ("stopped early", 3)
    assert outcome(resume(run, dataset=tiny))[2] == ("stopped early", 3)
    assert outcome(resume(run, epochs=9, dataset=tiny))[2] == ("stopped early", 5)
    assert outcome(resume(run, epochs=6, dataset=tiny))[2] == ("finished", 6)


@pytest.mark.parametrize("status", ["diverged", "pruned"])
def test_a_run_that_cannot_go_on_names_the_way_out(
    tiny: Dataset, configure: Configure, tmp_path: Path, status: str
) -> None:
    if status == "diverged":
        run = train(configure(optim=OptimConfig(lr=1e9)), tmp_path / "run", dataset=tiny)
    else:
        parent = train(configure(), tmp_path / "parent", dataset=tiny)
        model = create_model("highway-mlp", depth=2, width=6, classes=3, input_shape=(1, 4, 4))
        run = derive_run(parent, tmp_path / "run", model, "pruned", EpochMetrics(0))
    way_out = {"diverged": "with a lower learning rate", "pruned": "from its weights with init"}
    with pytest.raises(UserError, match=rf"cannot be continued; start a new run {way_out[status]}"):
        resume(run, epochs=9, dataset=tiny)


def test_a_run_without_its_checkpoints_does_not_go_on(tiny: Dataset, configure: Configure, tmp_path: Path) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    for file in (run.path / "checkpoint").iterdir():
        file.unlink()
    with pytest.raises(UserError, match="has no checkpoint to continue from"):
        resume(run, epochs=3, dataset=tiny)
    assert run.summary is not None


def test_the_command_line_trains_a_finished_run_for_longer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--data.source", "digits", "--model.depth", "2", "--model.width", "6", "--epochs", "1", "--quiet"]
    assert main(["train", *settings, "--folder", str(tmp_path / "run")]) == 0
    assert main(["train", "--resume", str(tmp_path / "run"), "--epochs", "2"]) == 0
    assert "finished after 2 epochs" in capsys.readouterr().out
    assert main(["train", "--resume", str(tmp_path / "run"), "--epochs", "1"]) == 2
