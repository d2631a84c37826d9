"""Learning from a teacher: hints, soft answers, and that a killed run goes on to the same bits."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from verydeep.data import Dataset, Split
from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.objectives import Classification
from verydeep.training import (
    DistillConfig,
    EpochMetrics,
    ModelConfig,
    OptimConfig,
    Run,
    ScheduleConfig,
    TrainConfig,
    make_model,
    resume,
    train,
)
from verydeep.training.step._distillation import Distillation

HINTS = DistillConfig(hint_epochs=2, hint="conv6", guided="highway3")


@pytest.fixture(scope="module")
def images() -> Dataset:
    random = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    x = torch.randn(60, 1, 8, 8, generator=random) + y[:, None, None, None]
    return Dataset("images", Split(x[:40], y[:40]), None, Split(x[40:], y[40:]), ("a", "b", "c"))


def settings(**changes: Any) -> TrainConfig:
    plain = TrainConfig(
        model=ModelConfig("highway-a", dropout=0.0),
        optim=OptimConfig(lr=0.01, nesterov=True),
        schedule=ScheduleConfig("one-cycle"),
        epochs=4,
        batch_size=10,
        threads=1,
        checkpoint_every=0.0,
    )
    return replace(plain, **changes)


@pytest.fixture(scope="module")
def teacher(images: Dataset, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("teacher") / "run"
    train(settings(model=ModelConfig("fitnet-a"), optim=OptimConfig(lr=0.003), epochs=2), path, dataset=images)
    return str(path)


@pytest.fixture
def student(teacher: str) -> Callable[..., TrainConfig]:
    return lambda **changes: settings(distill=replace(HINTS, teacher=teacher, **changes))


def outcome(run: Run) -> tuple[list[EpochMetrics], bytes, list[float]]:
    """Metrics, weights, and the regressor that was thrown away."""
    lines = [replace(line, seconds=0) for line in run.metrics]
    regressor = load_file(max((run.path / "checkpoint").glob("*.safetensors")))["extra.weight"]
    return lines, (run.path / "model.safetensors").read_bytes(), regressor.flatten().tolist()


def test_hints_train_the_layers_up_to_the_guided_one_and_no_others(
    tmp_path: Path, images: Dataset, student: Callable[..., TrainConfig], stop_after: Any
) -> None:
    config = student()
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", dataset=images, progress=stop_after(7))
    kept = load_file(tmp_path / "run" / "model.safetensors")  # after the first of the two epochs of hints
    start = make_model(config, images).state_dict()
    assert kept.keys() == start.keys()  # the regressor is not among them
    changed = {name.split(".")[1] for name in kept if not torch.equal(kept[name], start[name])}
    assert changed == {"conv1", "highway2", "highway3"}


def test_the_error_of_hints_falls_and_then_the_labels_are_learnt(
    tmp_path: Path, images: Dataset, student: Callable[..., TrainConfig]
) -> None:
    config = replace(student(), epochs=20)
    config = replace(config, distill=replace(config.distill, hint_epochs=6))
    lines = [line.to_dict() for line in train(config, tmp_path / "run", dataset=images).metrics]
    assert lines[5]["loss"] < 0.8 * lines[0]["loss"]
    assert all(line["accuracy"] == 0 for line in lines[:6])
    assert lines[-1]["accuracy"] > lines[6]["accuracy"]
    assert lines[5]["lr"] < lines[6]["lr"] > lines[-1]["lr"]  # each stage goes through the schedule


def test_each_stage_goes_through_all_steps_of_the_schedule(
    tmp_path: Path, images: Dataset, student: Callable[..., TrainConfig]
) -> None:
    config = replace(student(hint_epochs=2), epochs=6, schedule=ScheduleConfig("multistep", 0.1, (2, 4)))
    rates = [line.lr for line in train(config, tmp_path / "run", dataset=images).metrics]
    assert rates == pytest.approx([0.01, 0.001, 0.01, 0.01, 0.001, 0.0001])


@pytest.mark.slow
@pytest.mark.parametrize("steps", [2, 7, 8, 9, 13])  # 4 steps an epoch; two epochs of hints
def test_a_killed_run_goes_on_to_the_same_bits(
    steps: int, tmp_path: Path, images: Dataset, student: Callable[..., TrainConfig], stop_after: Any
) -> None:
    config = replace(student(), ema_half_life=1.0)
    whole = train(config, tmp_path / "whole", dataset=images)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", dataset=images, progress=stop_after(steps))
    assert outcome(resume(tmp_path / "run", dataset=images)) == outcome(whole)


class Fixed(nn.Module):
    """Gives the same logits whatever it sees."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, x: Tensor) -> Tensor:
        return self.logits


@pytest.mark.parametrize(("fraction", "weight"), [(0.0, 4.0), (0.5, 2.5), (1.0, 1.0)])
def test_soft_answers_are_weighted_by_four_to_one_beside_the_labels(fraction: float, weight: float) -> None:
    ours, theirs = torch.tensor([[1.0, 2.0, 0.0], [0.5, 0.0, 3.0]]), torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.0, 6.0]])
    y = torch.tensor([1, 2])
    network: Any = Fixed(theirs)
    distillation = Distillation(settings(), Classification(), Fixed(ours), nn.Identity(), network, nullcontext)
    total, sums = distillation(torch.zeros(2, 1), y, 0, fraction)
    loss, correct = total.item(), sums[1].item()
    soft = -((theirs / 3).softmax(1) * (ours / 3).log_softmax(1)).sum()
    assert loss == pytest.approx((F.cross_entropy(ours, y, reduction="sum") + weight * soft).item(), rel=1e-6)
    assert correct == 2


def test_a_layer_is_named_with_its_activation() -> None:
    model = create_model("fitnet-a").eval()
    x = torch.randn(1, 3, 32, 32)
    assert model.features(x, "conv6").shape == (1, 32, 16, 16)  # type: ignore[operator]
    teacher = create_model("maxout").eval()
    assert teacher.features(x, "conv2").shape == (1, 192, 15, 15)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"hint": "conv99"}, "unknown layer 'conv99'"), ({"guided": "highway9"}, "smaller than the hint's"),
     ({"guided": "dense10"}, "not maps; choose a convolution"), ({"teacher": "nowhere"}, "cannot read nowhere"),
     ({"teacher": None}, r"needs distill\.teacher")],
)  # fmt: skip
def test_what_cannot_teach_is_refused_before_anything_is_written(
    changes: dict[str, Any], words: str, tmp_path: Path, images: Dataset, student: Callable[..., TrainConfig]
) -> None:
    config = student()
    with pytest.raises(UserError, match=words):
        train(replace(config, distill=replace(config.distill, **changes)), tmp_path / "run", dataset=images)
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_teacher_of_other_data_or_that_has_not_finished_is_refused(
    tmp_path: Path, images: Dataset, teacher: str, student: Callable[..., TrainConfig]
) -> None:
    config = student()
    other = replace(config, data=replace(config.data, preprocess="scale"))
    with pytest.raises(UserError, match=r"trained with data\.preprocess = paper"):
        train(other, tmp_path / "run", dataset=images)
    copy = tmp_path / "teacher"
    copy.mkdir()
    (copy / "config.json").write_text((Path(teacher) / "config.json").read_text())
    taught = replace(config, distill=replace(HINTS, teacher=str(copy)))
    with pytest.raises(UserError, match="has not finished"):
        train(taught, tmp_path / "run", dataset=images)
    summary = json.loads((Path(teacher) / "summary.json").read_text())
    (copy / "summary.json").write_text(json.dumps(summary | {"status": "diverged"}))
    with pytest.raises(UserError, match="diverged; choose another"):
        train(taught, tmp_path / "run", dataset=images)


@pytest.mark.parametrize(
    ("make", "words"),
    [(lambda: settings(distill=replace(HINTS, hint_epochs=4)), "fewer than all 4 epochs"),
     (lambda: settings(distill=HINTS, patience=1), "patience cannot be used with"),
     (lambda: DistillConfig(hint_epochs=1), "the layers of teacher and student"),
     (lambda: DistillConfig(temperature=0.0), "more than 0")],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()


def test_a_run_from_before_teachers_is_opened(tmp_path: Path, images: Dataset) -> None:
    run = train(settings(epochs=1), tmp_path / "run", dataset=images)
    file = run.path / "config.json"
    saved = json.loads(file.read_text())
    del saved["training"]["distill"]
    file.write_text(json.dumps(saved))
    assert Run.load(run.path).config == run.config
