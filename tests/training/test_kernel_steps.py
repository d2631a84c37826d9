"""Runs whose steps kernels train as a whole: when, with which results, and that they continue to the same bits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from verydeep.data import Augment, DataConfig, Dataset, Split, Task
from verydeep.models import create_model
from verydeep.objectives import Classification
from verydeep.training import (
    CompanionConfig,
    EpochMetrics,
    ModelConfig,
    OptimConfig,
    Run,
    ScheduleConfig,
    TrainingProgress,
    _trainer,
    resume,
    train,
)
from verydeep.training.run._checkpoint import Position


def outcome(run: Run) -> tuple[list[EpochMetrics], bytes]:
    return [replace(line, seconds=0) for line in run.metrics], (run.path / "model.safetensors").read_bytes()


def in_kernels(run: Run) -> bool:
    """Whether kernels trained whole steps, according to the newest checkpoint."""
    newest = max((run.path / "checkpoint").glob("*.safetensors"))
    with safe_open(newest, "pt") as file:
        return bool(json.loads(file.metadata()["verydeep"])["position"]["in_kernels"])


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(_trainer, "make_kernel_steps", lambda *_: None)
    return monkeypatch


def targets(tiny: Dataset, kind: str, outputs: int) -> Dataset:
    """The same samples with other targets."""
    scales = outputs if kind == "regression" else 0
    task = Task(kind, tuple("pqr"[:outputs]), (0.0,) * scales, (1.0,) * scales)  # type: ignore[arg-type]

    def changed(split: Split) -> Split:
        y = torch.stack([split.y % 2, split.y // 2, split.y.flip(0) % 2], 1)[:, :outputs].float()
        return Split(split.x, y + (0.3 * split.y[:, None] if kind == "regression" else 0), task=task)

    assert tiny.valid is not None
    return replace(
        tiny, train=changed(tiny.train), valid=changed(tiny.valid), test=changed(tiny.test), classes=(), task=task
    )


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "momentum": {"optim": OptimConfig(lr=0.05, momentum=0.5, nesterov=True, weight_decay=0.01, bias_lr=2.0)},
    "no momentum": {"optim": OptimConfig(lr=0.1, momentum=0.0)},
    "one cycle": {"schedule": ScheduleConfig("one-cycle", warmup=0.3)},
    "linear": {"model": ModelConfig("highway-mlp", depth=0)},
    "one layer": {"model": ModelConfig("plain-mlp", depth=1, width=6, activation="relu")},
    "residual": {"model": ModelConfig("residual-mlp", depth=3, width=6), "optim": OptimConfig(lr=0.01)},
    "regression": {"metric": "loss"},
    "multilabel": {"metric": "loss"},
}


@pytest.mark.parametrize("case", CASES)
def test_the_result_is_that_of_single_steps_to_rounding(
    case: str, tmp_path: Path, tiny: Dataset, configure: Any, without_kernels: pytest.MonkeyPatch
) -> None:
    data = targets(tiny, case, 1 if case == "regression" else 3) if case in ("regression", "multilabel") else tiny
    config = configure(**CASES[case])
    single = train(config, tmp_path / "single", dataset=data)
    assert not in_kernels(single)
    without_kernels.undo()
    whole = train(config, tmp_path / "whole", dataset=data)
    assert in_kernels(whole)
    for one, other in zip(whole.metrics, single.metrics, strict=True):
        for name, value in one.to_dict().items():
            if name != "seconds":
                assert value == pytest.approx(other.to_dict()[name], rel=1e-3, abs=1e-5), name


@pytest.mark.parametrize("case", ["momentum", "no momentum", "regression"])
@pytest.mark.parametrize("steps", [7, 12, 15])
def test_a_killed_run_continues_to_the_same_bits(
    case: str,
    steps: int,
    tmp_path: Path,
    tiny: Dataset,
    configure: Any,
    stop_after: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = targets(tiny, case, 1) if case == "regression" else tiny
    config = configure(**CASES[case])
    monkeypatch.setattr(_trainer, "_SYNC_EVERY", 5)
    expected = outcome(train(config, tmp_path / "whole", dataset=data))
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "killed", dataset=data, progress=stop_after(steps))
    assert outcome(resume(tmp_path / "killed", dataset=data)) == expected


def test_slow_steps_are_trained_in_shorter_calls_with_the_same_bits(
    tmp_path: Path, tiny: Dataset, configure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = outcome(train(configure(), tmp_path / "whole", dataset=tiny))
    monkeypatch.setattr("verydeep.training.step._kernel_steps._LONGEST", 1e-9)
    assert outcome(train(configure(), tmp_path / "slow", dataset=tiny)) == expected


def test_a_run_keeps_to_the_way_in_which_it_began(
    tmp_path: Path, tiny: Dataset, configure: Any, without_kernels: pytest.MonkeyPatch
) -> None:
    expected = outcome(train(configure(), tmp_path / "whole", dataset=tiny))

    class Stop(TrainingProgress):
        def epoch(self, metrics: EpochMetrics) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(configure(), tmp_path / "begun", dataset=tiny, progress=Stop())
    without_kernels.undo()
    assert outcome(resume(tmp_path / "begun", dataset=tiny)) == expected


def test_every_step_is_reported_with_its_position_and_rate(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    seen: list[tuple[int, int, int, float]] = []

    class Watch(TrainingProgress):
        def step(self, position: Position, result: Tensor, samples: int, lr: float) -> None:
            assert result.shape == (2,)
            seen.append((position.epoch, position.batch, samples, lr))

    config = configure(schedule=ScheduleConfig("one-cycle", warmup=0.5))
    train(config, tmp_path / "run", dataset=tiny, progress=Watch())
    assert [each[:3] for each in seen[:12]] == [(0, n, 10 if n < 12 else 5) for n in range(1, 13)]
    assert len({lr for *_, lr in seen[:12]}) == 12


def test_a_run_that_diverges_is_noticed(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    config = configure(optim=OptimConfig(lr=1e6), epochs=9, divergence_factor=2.0)
    run = train(config, tmp_path / "run", dataset=tiny)
    assert in_kernels(run)
    assert run.summary is not None
    assert run.summary.status == "diverged"


class _OwnLoss(Classification):
    pass


UNKNOWN: dict[str, dict[str, Any]] = {
    "adam": {"optim": OptimConfig("adam", 0.01)},
    "clip": {"optim": OptimConfig(lr=0.1, clip=1.0)},
    "average": {"ema_half_life": 0.5},
    "smoothing": {"label_smoothing": 0.1},
    "weights": {"class_weight": ("balanced",)},
    "companion": {"companion": CompanionConfig(("layer2",))},
    "augmentation": {"data": DataConfig("digits", augment=Augment(pad=1))},
    "lstm": {"model": ModelConfig("lstm-highway", depth=3, width=6)},
    "gelu": {"model": ModelConfig("highway-mlp", depth=3, width=6, activation="gelu")},
    "gelu, one layer": {"model": ModelConfig("highway-mlp", depth=1, width=6, activation="gelu")},
    "recomputed": {"checkpoint_activations": True},
    "objective": {"objective": _OwnLoss()},
    "hook": {"hook": True},
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_kernels_do_not_know_is_trained_step_by_step(
    case: str, tmp_path: Path, tiny: Dataset, configure: Any
) -> None:
    changes, own = dict(UNKNOWN[case]), {}
    if "objective" in changes:
        own["objective"] = changes.pop("objective")
    if changes.pop("hook", False):
        own["model"] = create_model("highway-mlp", depth=3, width=6, input_shape=(1, 4, 4), classes=3)
        own["model"].classifier.register_forward_hook(lambda *_: None)
    run = train(configure(epochs=1, **changes), tmp_path / "run", dataset=tiny, **own)
    assert not in_kernels(run)


def test_bfloat16_is_trained_in_kernels_where_the_processor_has_it(
    tmp_path: Path, tiny: Dataset, configure: Any
) -> None:
    from verydeep.kernels import has_bfloat16

    run = train(configure(precision="bfloat16"), tmp_path / "run", dataset=tiny)
    assert in_kernels(run) == has_bfloat16()
    exact = train(configure(), tmp_path / "exact", dataset=tiny)
    assert run.metrics[-1].loss == pytest.approx(exact.metrics[-1].loss, rel=0.05)
