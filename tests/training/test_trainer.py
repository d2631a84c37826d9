"""What a run records, how it ends, and that the same settings give the same numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from verydeep.data import Augment, DataConfig, Dataset
from verydeep.errors import UserError
from verydeep.models import create_model, load_weights
from verydeep.training import (
    EpochMetrics,
    ModelConfig,
    OptimConfig,
    ProcessGroup,
    Run,
    ScheduleConfig,
    TrainingProgress,
    evaluate,
    resume,
    train,
)
from verydeep.training.run._run_data import data_changes

ALONE = ProcessGroup(0, 1, torch.device("cpu"))


def but_seconds(run: Run) -> list[EpochMetrics]:
    return [replace(line, seconds=0) for line in run.metrics]


class Dropping(nn.Module):
    """Of the user's own; random in training."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)  # type: ignore[no-any-return]


def test_the_same_settings_give_the_same_metrics_and_weights_to_the_bit(
    tmp_path: Path, tiny: Dataset, configure: Any
) -> None:
    config = configure(
        seed=5, data=DataConfig("digits", augment=Augment(pad=1, mirror=True)), schedule=ScheduleConfig("one-cycle")
    )
    runs: list[Run] = []
    start = Dropping().state_dict()
    for name in ("a", "b"):
        torch.rand(7)  # what was drawn before must not matter
        model = Dropping()
        model.load_state_dict(start)
        runs.append(train(config, tmp_path / name, model=model, dataset=tiny))
    first, second = runs
    assert but_seconds(first) == but_seconds(second)
    assert (first.path / "model.safetensors").read_bytes() == (second.path / "model.safetensors").read_bytes()


def test_the_seed_decides_initial_weights_and_order(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    metrics = [but_seconds(train(configure(seed=s), tmp_path / f"{i}", dataset=tiny)) for i, s in enumerate((0, 0, 1))]
    assert metrics[0] == metrics[1] != metrics[2]


def test_metrics_hold_the_epochs_mean_loss_and_what_evaluation_finds(
    tmp_path: Path, tiny: Dataset, configure: Any
) -> None:
    run = train(configure(evaluate_train=True, epochs=3), tmp_path / "run", dataset=tiny)
    assert [line.epoch for line in run.metrics] == [1, 2, 3]
    assert run.summary is not None
    assert run.summary.status == "finished"
    best = run.summary.best
    for name in ("train", "valid", "test"):
        found = evaluate(run.model, getattr(tiny, name), ALONE)
        assert (getattr(best, f"{name}_loss"), getattr(best, f"{name}_accuracy")) == (found.loss, found.accuracy)
    first, last = (line.to_dict() for line in (run.metrics[0], run.metrics[-1]))
    assert first["loss"] > last["loss"]
    assert last["accuracy"] > 0.6


def test_the_loss_of_an_epoch_is_the_mean_over_its_samples(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    """With a rate of nearly nothing the weights stay, and the last batch, half as large, must count half."""
    run = train(configure(epochs=1, evaluate_train=True, optim=OptimConfig(lr=1e-30)), tmp_path / "run", dataset=tiny)
    line = run.metrics[0]
    assert line.loss == pytest.approx(line.train_loss, rel=1e-6)
    assert line.accuracy == line.train_accuracy


class Scripted(nn.Module):
    """Right on as many of the 40 validation samples as the script says for each epoch; one parameter.

    A decimal says how sure it is: at 30.9 it is right on 30, at a lower loss than at 30.
    """

    def __init__(self, script: Sequence[float]) -> None:
        super().__init__()
        self.script, self.evaluations = script, 0
        self.epoch = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return torch.zeros(len(x), 3) - self.epoch  # the gradient is 0: logits may shift
        sure, right = math.modf(self.script[self.evaluations])
        self.evaluations += 1
        with torch.no_grad():
            self.epoch.fill_(self.evaluations)
        labels = torch.arange(len(x)) % 3
        wrong = torch.arange(len(x)) >= right
        return torch.nn.functional.one_hot((labels + wrong.long()) % 3, 3) * (1.0 + sure)


def scripted(script: Sequence[float], path: Path, data: Dataset, config: Any) -> Run:
    return train(replace(config, evaluate_test=False), path, model=Scripted(script), dataset=data)


def test_the_weights_kept_are_those_best_on_validation_data(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    run = scripted([10, 30, 20, 30], tmp_path / "run", tiny, configure(epochs=4))
    assert load_file(run.path / "model.safetensors")["epoch"] == 2
    assert run.summary is not None
    assert run.summary.best == run.metrics[1]
    assert run.summary.last == run.metrics[3]


def test_of_equally_accurate_epochs_the_one_of_the_lowest_loss_is_kept(
    tmp_path: Path, tiny: Dataset, configure: Any
) -> None:
    run = scripted([30, 30.5, 30.2, 30.5, 29.9], tmp_path / "run", tiny, configure(epochs=5, patience=4))
    assert load_file(run.path / "model.safetensors")["epoch"] == 2
    assert run.summary is not None
    assert run.summary.best == run.measured == run.metrics[1]
    assert run.summary.status == "finished"
    again = scripted([30, 30.1, 30.2, 30.5], tmp_path / "again", tiny, configure(epochs=4, patience=2))
    assert again.summary is not None
    assert again.summary.epochs == 3  # patience is about accuracy, which has not risen


def test_training_stops_early_after_that_many_epochs_without_a_better_one(
    tmp_path: Path, tiny: Dataset, configure: Any
) -> None:
    run = scripted([10, 30, 20, 30, 31, 32], tmp_path / "run", tiny, configure(epochs=6, patience=2))
    assert run.summary is not None
    assert (run.summary.status, run.summary.epochs) == ("stopped early", 4)


def test_progress_keeps_training_going(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    run = scripted([10, 9, 11, 10, 12, 11], tmp_path / "run", tiny, configure(epochs=6, patience=2))
    assert run.summary is not None
    assert (run.summary.status, run.summary.epochs) == ("finished", 6)


def test_patience_without_validation_data_is_refused_before_anything_is_written(
    tmp_path: Path, unvalidated: Dataset, configure: Any
) -> None:
    with pytest.raises(UserError, match=r"data\.validation"):
        train(configure(patience=1), tmp_path / "run", dataset=unvalidated)
    assert not (tmp_path / "run" / "config.json").exists()
    train(configure(), tmp_path / "run", dataset=unvalidated)  # the folder is still free


def test_without_validation_data_the_last_weights_are_kept(
    tmp_path: Path, unvalidated: Dataset, configure: Any
) -> None:
    model = Dropping()
    run = train(configure(), tmp_path / "run", model=model, dataset=unvalidated)
    kept = load_file(run.path / "model.safetensors")
    assert all(torch.equal(kept[name], value) for name, value in model.state_dict().items())
    assert run.summary is not None
    assert run.summary.best is None


class Exploding(Dropping):
    """Learns for some steps, then its loss is not a number any more."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.register_buffer("left", torch.tensor(steps))
        self.left: Tensor

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.left -= 1
        return super().forward(x) if self.left >= 0 else super().forward(x) * math.nan


@pytest.mark.parametrize("validated", [True, False])
def test_divergence_is_a_result_and_leaves_the_weights_of_before(
    validated: bool, tmp_path: Path, tiny: Dataset, configure: Any
) -> None:
    data = tiny if validated else replace(tiny, valid=None)
    run = train(configure(epochs=4), tmp_path / "run", model=Exploding(13), dataset=data)
    run = Run.load(run.path)
    assert run.summary is not None
    assert (run.summary.status, run.summary.epochs) == ("diverged", 2)
    assert run.metrics[1].loss == math.inf
    assert "NaN" not in (run.path / "metrics.jsonl").read_text()
    assert run.metrics[1].valid_loss is None
    assert (run.summary.best is not None) is validated
    weights = load_file(run.path / "model.safetensors")
    assert weights["left"] == 1
    assert all(value.isfinite().all() for value in weights.values())
    assert resume(run.path).summary == run.summary


def test_a_loss_far_beyond_a_blind_guess_counts_as_divergence(
    tmp_path: Path, unvalidated: Dataset, configure: Any
) -> None:
    run = train(configure(optim=OptimConfig(lr=1e6), divergence_factor=2.0), tmp_path / "run", dataset=unvalidated)
    assert run.summary is not None
    assert (run.summary.status, run.summary.epochs) == ("diverged", 1)
    with pytest.raises(UserError, match="diverged in its first epoch"):
        _ = Run.load(run.path).model


def test_bfloat16_learns_and_is_not_float32(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    wide, narrow = (
        train(configure(epochs=4, precision=p), tmp_path / p, dataset=tiny) for p in ("float32", "bfloat16")
    )
    assert wide.metrics[-1].loss != narrow.metrics[-1].loss
    assert narrow.metrics[-1].loss == pytest.approx(wide.metrics[-1].loss, rel=0.1)
    assert all(value.dtype == torch.float32 for value in narrow.model.state_dict().values())


def test_a_training_in_bfloat16_continues_to_the_same_bits(
    tmp_path: Path, tiny: Dataset, configure: Any, stop_after: Any
) -> None:
    config = configure(epochs=3, precision="bfloat16")
    whole = train(config, tmp_path / "whole", dataset=tiny)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", dataset=tiny, progress=stop_after(7))
    run = resume(tmp_path / "run", dataset=tiny)
    assert [line.loss for line in run.metrics] == [line.loss for line in whole.metrics]
    expected = whole.model.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in run.model.state_dict().items())


@pytest.mark.slow
def test_compile_trains_the_same_network(tmp_path: Path, tiny: Dataset, configure: Any, monkeypatch: Any) -> None:
    compiled, real = [], torch.compile

    def cheap(model: nn.Module) -> Any:
        compiled.append(model)
        return real(model, backend="aot_eager")

    monkeypatch.setattr(torch, "compile", cheap)
    eager = train(configure(), tmp_path / "eager", dataset=tiny)
    assert compiled == []
    run = train(configure(compile=True), tmp_path / "compiled", dataset=tiny)
    assert len(compiled) == 1
    assert run.metrics[-1].test_loss == pytest.approx(eager.metrics[-1].test_loss, rel=1e-4)
    assert set(load_file(run.path / "model.safetensors")) == set(load_file(eager.path / "model.safetensors"))


def test_a_module_and_data_of_ones_own_are_trained_and_continued(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    class Stop(TrainingProgress):
        def epoch(self, metrics: EpochMetrics) -> None:
            if metrics.epoch == 2:
                raise KeyboardInterrupt

    config = configure(epochs=4)
    torch.manual_seed(1)
    whole = train(config, tmp_path / "whole", model=Dropping(), dataset=tiny)
    torch.manual_seed(1)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", model=Dropping(), dataset=tiny, progress=Stop())
    for given, missing in (({"model": Dropping()}, "dataset"), ({"dataset": tiny}, "model")):
        with pytest.raises(UserError, match=rf"resume\(path, {missing}=\.\.\.\)"):
            resume(tmp_path / "run", **given)
    run = resume(tmp_path / "run", model=Dropping(), dataset=tiny)
    assert but_seconds(run) == but_seconds(whole)
    assert (run.path / "model.safetensors").read_bytes() == (whole.path / "model.safetensors").read_bytes()
    fresh = Dropping()
    load_weights(fresh, run.path / "model.safetensors")
    with pytest.raises(UserError, match="load_weights"):
        _ = run.model


def test_other_data_than_before_is_refused(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    class Stop(TrainingProgress):
        def epoch(self, metrics: EpochMetrics) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(configure(), tmp_path / "run", dataset=tiny, progress=Stop())
    shorter = replace(tiny, train=replace(tiny.train, x=tiny.train.x[:100], y=tiny.train.y[:100]))
    with pytest.raises(UserError, match=r"the data has changed .train 115, now 100"):
        resume(tmp_path / "run", dataset=shorter)
    other = replace(tiny, train=replace(tiny.train, x=tiny.train.x + 1))
    with pytest.raises(UserError, match=r"the data has changed .other values in train\)"):
        resume(tmp_path / "run", dataset=other)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_another_value_in_any_split_is_noticed(split: str, tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    run = train(configure(epochs=1), tmp_path / "run", dataset=tiny)
    assert not data_changes(run, tiny)
    samples = getattr(tiny, split)
    x, y = samples.x.clone(), samples.y.clone()
    x[-2, 0, 1, 1] += 1
    y[-2] = (y[-2] + 1) % 3
    for other in (replace(samples, x=x), replace(samples, y=y)):
        assert data_changes(run, replace(tiny, **{split: other})) == f"other values in {split}"
    samples.x[-2, 0, 1, 1] += 1  # in place: what is remembered of a tensor no longer holds
    assert data_changes(run, tiny) == f"other values in {split}"


def saved_bytes(model: nn.Module, x: Tensor, y: Tensor) -> tuple[int, list[Tensor]]:
    """Memory that the forward pass keeps for the backward pass, and the gradients."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    torch.manual_seed(0)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = nn.functional.cross_entropy(model(x), y)
        size = sum(kept.values())
    loss.backward()
    return size, [p.grad for p in model.parameters() if p.grad is not None]


def test_recomputed_activations_give_the_same_gradients_and_need_less_memory() -> None:
    x, y = torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))
    torch.manual_seed(0)
    kept = create_model("highway-c").train()
    lean = create_model("highway-c").train()
    lean.load_state_dict(kept.state_dict())
    lean.checkpoint_activations()
    assert any(isinstance(module, nn.Dropout) for module in kept.modules())
    much, gradients = saved_bytes(kept, x, y)
    little, again = saved_bytes(lean, x, y)
    assert all(torch.equal(a, b) for a, b in zip(gradients, again, strict=True))
    assert little < much / 2


def test_a_run_may_recompute_activations_and_ends_the_same(tmp_path: Path, configure: Any) -> None:
    torch.manual_seed(0)
    images = make_images()
    config = configure(model=ModelConfig("highway-mnist-16"), epochs=1)
    plain = train(config, tmp_path / "plain", dataset=images)
    lean = train(replace(config, checkpoint_activations=True), tmp_path / "lean", dataset=images)
    assert but_seconds(plain) == but_seconds(lean)
    with pytest.raises(UserError, match="use torch"):
        train(configure(checkpoint_activations=True), tmp_path / "no", model=Dropping(), dataset=images)


def make_images() -> Dataset:
    from verydeep.data import Split

    def split(samples: int) -> Split:
        return Split(torch.rand(samples, 1, 28, 28), torch.arange(samples) % 10)

    return Dataset("images", split(20), None, split(10), tuple("0123456789"))
