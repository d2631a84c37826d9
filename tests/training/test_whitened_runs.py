"""Runs on whitened images: the matrix is stored with the run, and used for predictions and in exported files."""

from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest
import torch

from verydeep.cli import main
from verydeep.data import load_dataset
from verydeep.training import Run


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    x = random.integers(0, 100, (60, 3, 8, 8)) + 50 * y[:, None, None, None]
    np.savez(tmp_path / "pictures.npz", x=x.astype(np.uint8), y=y)
    return tmp_path / "pictures.npz"


def test_a_whitened_run_predicts_and_is_exported(pictures: Path, tmp_path: Path) -> None:
    folder, file = tmp_path / "run", tmp_path / "net.onnx"
    settings = ["--data.preprocess", "zca", "--data.contrast-norm", "10", "--model.name", "highway-mlp", "--depth", "3"]
    assert main(["train", str(pictures), *settings, "--epochs", "2", "--threads", "1", "--folder", str(folder)]) == 0
    run = Run.load(folder)
    x = np.load(pictures)["x"][:5]
    dataset = load_dataset(run.config.data)
    assert dataset.preparation is not None
    samples = dataset.preparation(torch.from_numpy(x))  # type: ignore[arg-type]
    with torch.inference_mode():
        expected = run.model(samples).softmax(1).numpy()
    np.testing.assert_allclose(run.predict_proba(x), expected, atol=1e-5)
    assert main(["predict", str(folder), str(pictures), "-o", str(tmp_path / "answers.csv")]) == 0
    assert main(["export", str(folder), "--onnx", str(file)]) == 0  # compares the file's answers with the run's
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(["probabilities"], {"pixels": x})[0], expected, atol=1e-4)


def test_grey_images_and_tables_have_no_contrast_to_scale(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ["--data.preprocess", "scale", "--data.contrast-norm", "10"]
    assert main(["train", str(pictures), *wrong, "--epochs", "1"]) == 2
    message = capsys.readouterr().err
    assert "data.contrast_norm is for images with normalised contrast" in message
    assert message.count("\n") == 1
