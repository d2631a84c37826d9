import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest
import torch

from verydeep.cli import main
from verydeep.data import DataConfig, Dataset
from verydeep.errors import UserError, install_command
from verydeep.interop import _onnx, _onnx_predictor, export_onnx, export_predictor
from verydeep.interop._preparation_graph import add_answers
from verydeep.models import create_model
from verydeep.training import Run, TrainConfig, load_data, train

Configure = Callable[..., TrainConfig]


@pytest.fixture
def digits(tmp_path: Path, configure: Configure) -> Run:
    return train(configure(), tmp_path / "digits")


@pytest.mark.slow
def test_an_exported_run_gives_the_same_logits_for_batches_of_any_size(
    digits: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "out" / "net.onnx"
    assert main(["export", str(digits.path), "--onnx", str(file), "--logits"]) == 0
    printed = capsys.readouterr().out
    assert "checked on 100 samples in batches of 1, 7, 100" in printed
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    x = load_data(digits).x
    for size in (1, 3, 359):
        with torch.inference_mode():
            expected = digits.model(x[:size]).numpy()
        np.testing.assert_allclose(session.run(["logits"], {"x": x[:size].numpy()})[0], expected, atol=1e-5)
    # The file says which classes there are, and how to prepare samples.
    found = {entry.key: json.loads(entry.value) for entry in onnx.load(file).metadata_props}
    assert found["verydeep.classes"] == list("0123456789")
    assert found["verydeep.preparation"]["full"] == 16.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("highway-mlp", {"depth": 9}),
        ("highway-mlp", {"depth": 4, "carry": "independent", "activation": "relu"}),
        ("plain-mlp", {"depth": 4}),
        ("highway-mnist-16", {}),
        ("highway-19-nin", {}),
    ],
)
def test_every_kind_of_network_is_exported(tmp_path: Path, name: str, overrides: dict[str, Any]) -> None:
    model = create_model(name, **overrides)
    check = export_onnx(model, torch.randn(5, *model.input_shape), tmp_path / "net.onnx")
    assert check.difference <= 1e-5
    assert check.batches == (1, 5)
    assert check.size == (tmp_path / "net.onnx").stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["net.onnx"]


@pytest.mark.slow
def test_nothing_is_left_when_the_answers_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_onnx, "TOLERANCE", 0.0)
    model = create_model("highway-mlp", depth=3)
    with pytest.raises(UserError, match="was not written: onnxruntime differs"):
        export_onnx(model, 100 * torch.randn(50, *model.input_shape), tmp_path / "net.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_nothing_is_left_when_the_predictions_differ(
    digits: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = dataclasses.replace(digits.task, names=tuple("1023456789"))  # the graph's names of the classes
    monkeypatch.setattr(_onnx_predictor, "add_answers", lambda graph, value, _task: add_answers(graph, value, wrong))
    assert main(["export", str(digits.path), "--onnx", str(tmp_path / "net.onnx")]) == 2
    assert "was not written: onnxruntime differs from verydeep predict by" in capsys.readouterr().err
    assert not (tmp_path / "net.onnx").exists()


@pytest.mark.slow
def test_columns_may_be_called_like_outputs_and_rows_need_no_target(
    tmp_path: Path, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{i % 7},{'red' if i % 2 else 'blue'},{i},{i % 2}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["x,label,probabilities,kind", *rows]))
    (tmp_path / "new.csv").write_text("x,label,probabilities\n3,red,\n,green,5\n,,\n")
    data = DataConfig(str(tmp_path / "t.csv"), target=("kind",))
    run = train(configure(data=data), tmp_path / "run", progress=False)
    file = tmp_path / "net.onnx"
    assert main(["export", str(run.path), "--onnx", str(file), "--data", str(tmp_path / "new.csv")]) == 0
    assert "checked on 3 samples in batches of 1, 3" in capsys.readouterr().out
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = json.loads(session.get_modelmeta().custom_metadata_map["verydeep.inputs"])
    assert names == {"x": "x", "label": "label (input)", "probabilities": "probabilities (input)"}
    assert sorted(entry.name for entry in session.get_inputs()) == sorted(names.values())


@pytest.mark.slow
def test_the_network_of_tensors_given_in_python_is_exported_with_its_classes(
    tiny: Dataset, tmp_path: Path, configure: Configure
) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny, progress=False)
    export_predictor(run, tiny.test.x, tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    (label,) = session.run(["label"], {"x": tiny.test.x.numpy()})
    assert label.tolist() == run.predict(tiny.test.x).tolist()


@pytest.mark.slow
def test_an_older_file_stays_when_the_answers_are_not_numbers(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("older")
    model = create_model("highway-mlp", depth=3)
    with torch.no_grad():
        model.get_parameter("classifier.bias").fill_(float("nan"))
    with pytest.raises(UserError, match="was not written"):
        export_onnx(model, torch.randn(3, *model.input_shape), tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx").read_text() == "older"


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime", "onnxscript"])
def test_a_missing_extra_is_named(
    digits: Run, tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["export", str(digits.path), "--onnx", str(tmp_path / "net.onnx")]) == 2
    error = capsys.readouterr().err
    assert error == f"verydeep: ONNX export needs {missing}; install with: {install_command('onnx')}\n"
    assert not (tmp_path / "net.onnx").exists()
