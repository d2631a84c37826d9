"""What the interactive page is made of: samples, weights, preparation, words, and the command that writes it."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from verydeep.cli import main
from verydeep.data import Split, Task, UnpreparedSplit
from verydeep.models import MLPConfig, Network, build
from verydeep.report.explore._baseline import measure_baseline
from verydeep.report.explore._ink import describe_ink
from verydeep.report.explore._samples import choose_samples
from verydeep.report.explore._weights import describe_weights
from verydeep.report.explore._words import learned_nothing, page_words
from verydeep.training import ModelConfig, Run, TrainConfig, train


def data_of(path: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def linear(classes: int = 3) -> Network:
    torch.manual_seed(0)
    return build(MLPConfig("plain", 0, input_shape=(4,), classes=classes))


def test_the_command_writes_one_page(trained: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    run = shutil.copytree(trained.path, tmp_path / "run")
    assert main(["explore", str(run), "-o", str(page), "--no-open"]) == 0
    assert re.search(r"page\.html: 0\.\d MB, self-contained, with 2\d\d samples", capsys.readouterr().out)
    text = page.read_text()
    assert "worker-src blob:" in text
    assert not re.search(r"(src|href)=\"(?!data:|#)", text)
    assert "unsafe-eval" not in text
    data = data_of(page)
    assert sum(data["samples"]["scored"]) == 200
    assert sorted(data["importance"]["order"]) == [0, 1, 2, 3]
    assert data["network"]["precision"] == "float32"


def test_the_name_must_be_that_of_a_page(trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", str(trained.path), "-o", "page.txt", "--no-open"]) == 2
    assert "must end in .html" in capsys.readouterr().err


def test_a_network_that_the_page_cannot_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from verydeep.data import DataConfig

    model = ModelConfig("lstm-highway", depth=3, width=4)
    train(TrainConfig(DataConfig("digits"), model, epochs=1, threads=1), tmp_path / "run", progress=False)
    assert main(["explore", str(tmp_path / "run"), "--no-open"]) == 2
    assert "the page cannot show this network" in capsys.readouterr().err
    assert not (tmp_path / "run" / "explore.html").exists()


def test_data_given_in_python_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from verydeep.data import DataConfig, load_dataset

    x, y = np.random.default_rng(0).normal(size=(60, 3)), np.repeat(["a", "b"], 30)
    config = TrainConfig(DataConfig("mine"), ModelConfig(depth=2, width=4), epochs=1, threads=1)
    train(config, tmp_path / "run", dataset=load_dataset((x, y)), progress=False)
    assert main(["explore", str(tmp_path / "run"), "--no-open"]) == 2
    assert "was trained on data given in Python" in capsys.readouterr().err


def test_wrong_answers_come_first_and_the_score_stays_unbiased() -> None:
    model, x = linear(), torch.randn(1000, 4)
    y = torch.randint(0, 3, (1000,))
    found = choose_samples(model, Split(x, y), UnpreparedSplit(x, y), Task("classification", ("a", "b", "c")))
    wrong = (found.outputs.argmax(1) != found.targets).numpy()
    assert (np.diff(wrong.astype(int)) <= 0).all()
    assert found.scored.sum() == 200
    assert wrong[~found.scored].all()
    assert (~found.scored).sum() == 24
    assert found.of == 1000


def test_the_largest_errors_of_a_regression_come_first() -> None:
    model, x, y = linear(2), torch.randn(50, 4), torch.randn(50, 2)
    task = Task("regression", ("a", "b"), (0.0, 0.0), (1.0, 1.0))
    found = choose_samples(model, Split(x, y), UnpreparedSplit(x, y), task)
    assert ((found.outputs - found.targets).abs().sum(1).diff() <= 1e-6).all()


@pytest.mark.parametrize(("scale", "precision"), [(1.0, "float16"), (1e6, "float32")])
def test_large_weights_become_float16_if_the_answers_stay(scale: float, precision: str) -> None:
    model, x, task = linear(), torch.randn(20, 4), Task("classification", ("a", "b", "c"))
    with torch.no_grad():
        model.classifier.weight *= scale  # type: ignore[union-attr]  # too large for float16
        outputs = model(x)
    weights = np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])
    assert describe_weights(weights, model, x, outputs, task, large=0)["precision"] == precision
    assert describe_weights(weights, model, x, outputs, task)["precision"] == "float32"
    assert describe_weights(weights, model, x, -outputs, task, large=0)["precision"] == "float32"


def test_a_network_that_learned_nothing_is_named() -> None:
    task, y = Task("classification", ("a", "b")), torch.tensor([0, 0, 0, 1] * 100)
    right, constant = torch.nn.functional.one_hot(y, 2).float(), torch.tensor([[1.0, 0.0]]).expand(400, 2)
    assert learned_nothing(measure_baseline(right, y, task), "classification", "test") is None
    note = learned_nothing(measure_baseline(constant, y, task), "classification", "test")
    assert note is not None
    assert "75.0% of 400 test samples correctly, and always answering a gives 75.0%" in note
    labels = torch.stack([y, 1 - y], 1).float()
    several = Task("multilabel", ("a", "b"))
    assert measure_baseline(labels - 0.5, labels, several).is_beaten
    assert not measure_baseline(torch.tensor([[-1.0, 1.0]]).expand(400, 2), labels, several).is_beaten
    numbers, number = torch.randn(400, 1), Task("regression", ("a",), (0.0,), (1.0,))
    assert measure_baseline(numbers + 0.1, numbers, number).is_beaten
    note = learned_nothing(measure_baseline(torch.zeros(400, 1) + 9, numbers, number), "regression", "test")
    assert note is not None
    assert "always answering with their mean gives 0" in note


def test_ink_is_measured_like_mnist() -> None:
    images = np.zeros((3, 1, 28, 28), dtype=np.uint8)
    images[:, :, 4:24, 9:19] = 255
    found = describe_ink(images, 0.0, 255.0)
    assert not found["dark"]
    assert found["size"] == pytest.approx(20 / 28)
    assert found["centre"] == pytest.approx([0.5, 0.5])
    inverted = describe_ink(255 - images, 0.0, 255.0)
    assert inverted["dark"]
    assert inverted["size"] == pytest.approx(20 / 28)


def test_the_words_fit_the_network() -> None:
    affine, highway = {"op": "affine", "layer": None}, {"op": "highway", "layer": 0}
    data = {
        "inputs": {"kind": "row"},
        "name": "run",
        "data_name": "wine",
        "parameters": 1234,
        "split": "test",
        "accuracy": 0.9,
    }
    deep = page_words(data | {"network": {"steps": [affine, highway, affine]}})
    assert deep["headline"] == "Watch a row travel through 2 layers"
    assert "1 of them highway layers" in deep["about"]
    assert deep["about"].endswith("trained on wine with 90.00% test accuracy.")
    flat = page_words(data | {"network": {"steps": [affine]}})
    assert flat["headline"] == "See how a linear model answers for a row"
    assert (flat["rows"], flat["closable"]) == (0, 0)


def test_the_guide_has_the_measured_times() -> None:
    root = Path(__file__).parents[2]
    measured = json.loads((root / "results" / "benchmarks" / "explore-page.json").read_text())["networks"]
    guide = (root / "docs" / "explore.md").read_text()
    for name, found in measured.items():
        another, closing, score = (
            f"{found[f'milliseconds_to_{what}']['median']:,.0f} ms"
            for what in ("answer_for_another_sample", "answer", "score")
        )
        assert f"| {name} | {found['megabytes']:.1f} MB | {another} | {closing} | {score} (" in guide
