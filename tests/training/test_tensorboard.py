import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]
    EventAccumulator,
)

from verydeep.cli import main
from verydeep.data import Dataset
from verydeep.errors import install_command
from verydeep.training import (
    EpochMetrics,
    OptimConfig,
    ProgressLines,
    Run,
    TensorBoard,
    TrainConfig,
    TrainingProgress,
    resume,
    train,
)

Configure = Callable[..., TrainConfig]


def curves(run: Run) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(run.path / "tensorboard"))
    events.Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def close_to(values: list[tuple[int, float]]) -> list[tuple[int, object]]:
    return [(step, pytest.approx(value, rel=1e-6)) for step, value in values]


def test_every_metric_of_every_epoch_can_be_read_back(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    run = train(
        configure(evaluate_train=True), tmp_path / "run", dataset=tiny, progress=TensorBoard(TrainingProgress())
    )
    found = curves(run)
    names = {"loss/epoch": "loss", "accuracy/epoch": "accuracy", "lr": "lr", "seconds": "seconds"}
    for split in ("train", "valid", "test"):
        names |= {f"loss/{split}": f"{split}_loss", f"accuracy/{split}": f"{split}_accuracy"}
    assert found.keys() == names.keys()
    for tag, name in names.items():
        assert found[tag] == close_to([(line.epoch, line.to_dict()[name]) for line in run.metrics])


def test_a_run_that_goes_on_has_every_epoch_once(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    class Crash(TrainingProgress):
        def epoch(self, metrics: EpochMetrics) -> None:
            if metrics.epoch == 2:
                raise OSError("crash")

    with pytest.raises(OSError, match="crash"):
        train(configure(epochs=4), tmp_path / "run", dataset=tiny, progress=TensorBoard(Crash()))
    run = resume(tmp_path / "run", dataset=tiny, progress=TensorBoard(TrainingProgress()))
    assert curves(run)["loss/test"] == close_to([(line.epoch, line.to_dict()["test_loss"]) for line in run.metrics])
    assert len(run.metrics) == 4


def test_a_diverged_epoch_has_no_loss_to_draw(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    run = train(
        configure(optim=OptimConfig(lr=1e30)), tmp_path / "run", dataset=tiny, progress=TensorBoard(TrainingProgress())
    )
    assert run.summary is not None
    assert run.summary.status == "diverged"
    assert len(curves(run)["lr"]) == 1


def test_people_still_see_what_they_would_without_it(
    tmp_path: Path, tiny: Dataset, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    train(configure(), tmp_path / "run", dataset=tiny, progress=TensorBoard(ProgressLines()))
    assert capsys.readouterr().out.count("epoch ") == 2


def test_without_the_extra_it_is_named_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for several in ([], ["--seeds", "2"]):
        arguments = ["train", "--data.source", "digits", "--folder", str(tmp_path / "run"), "--tensorboard", *several]
        assert main(arguments) == 2
        assert install_command("tensorboard") in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
