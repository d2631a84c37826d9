"""The demo: what it trains, what it says, and that it can be stopped."""

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import verydeep
from verydeep.cli import main
from verydeep.cli.commands._demo import _print_results
from verydeep.errors import UserError
from verydeep.paper import _demo, demo_configs, demo_data, verdict
from verydeep.studies import Study
from verydeep.studies._claim import claim_training, finish_training
from verydeep.training import EpochMetrics, Run, read_config, resume

CONFIGS = Path(__file__).parents[2] / "configs"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(verydeep.__file__).parents[1])}
COMMAND = [sys.executable, "-m", "verydeep", "demo", "--data", "digits"]


@pytest.mark.parametrize("name", ["plain", "highway"])
def test_the_demo_trains_the_shipped_configurations(name: str) -> None:
    shipped = read_config(CONFIGS / f"{name}50-mnist.toml")
    demo = demo_configs("mnist")[name]
    assert demo == replace(shipped, epochs=demo.epochs, threads=1, device="cpu")


@pytest.mark.parametrize(
    ("plain", "highway", "said"),
    [
        (2.3, 0.1, "The plain network is stuck at chance level (loss 2.30); the highway network learns."),
        (None, 0.1, "The plain network diverged; the highway network learns."),
        (0.1, 2.31, "The highway network is stuck at chance level (loss 2.30); the plain network learns."),
        (0.3, 0.1, "Both networks learn, but the plain one's loss is still 3.0 times that of the highway one."),
        (0.1, 0.3, "Both networks learn, but the highway one's loss is still 3.0 times that of the plain one."),
        (0.1, 0.11, "Both networks learn, and neither is clearly ahead."),
        (None, float("nan"), "Neither network learned: the plain one diverged, the highway one diverged."),
        (None, 2.3, "Neither network learned: the plain one diverged, the highway one is stuck at chance level"),
    ],
)
def test_the_verdict_says_what_was_measured(plain: float | None, highway: float | None, said: str) -> None:
    assert verdict(EpochMetrics(1, train_loss=plain), EpochMetrics(1, train_loss=highway)).startswith(said)


def test_a_network_that_cannot_be_trained_is_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def all_die(study: Study, **_: object) -> str:
        for name in ("plain", "highway"):
            claim = claim_training(study, "worker", only=[name])
            assert claim is not None
            result = {"status": "failed", "reason": "3 workers died while training it", "epochs": 0}
            finish_training(study, claim, result, [])
        return "complete"

    monkeypatch.setattr("verydeep.studies.run_study", all_die)
    assert main(["demo", "--data", "digits", "--folder", str(tmp_path)]) == 2
    expected = "verydeep: the plain network could not be trained: 3 workers died while training it\n"
    assert capsys.readouterr().err == expected


def test_without_mnist_the_demo_takes_the_digits_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str, root: Path | None) -> None:
        raise UserError(f"{name} could not be got:\n  - here: nothing\n  - web: refused\n    twice\nWhat to do: wait")

    monkeypatch.setattr(_demo, "load_dataset", nowhere)
    assert demo_data(None) == ("digits", "mnist could not be got: here: nothing; web: refused")


def test_a_network_that_diverges_at_once_is_told_and_what_to_try_next_needs_no_other_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learnt = EpochMetrics(1, loss=0.1, train_loss=0.1, train_accuracy=0.9, test_accuracy=0.8, seconds=1.0)
    lines = {"plain": [EpochMetrics(1, loss=math.inf)], "highway": [learnt]}
    _print_results(lines, tmp_path, "digits")
    shown = capsys.readouterr().out
    assert "The plain network diverged; the highway network learns." in shown
    assert shown.count("verydeep train digits --") == shown.count("verydeep train") == 3
    assert (tmp_path / "curves.png").exists()


@pytest.mark.slow
def test_the_demo_trains_both_in_a_new_folder_draws_and_tells(tmp_path: Path) -> None:
    (tmp_path / "runs" / "demo" / "1").mkdir(parents=True)
    command = [*COMMAND, "--epochs", "1"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True, text=True)
    folder = tmp_path / "runs" / "demo" / "2"
    last = {name: Run.load(folder / name).metrics[-1] for name in ("plain", "highway")}
    assert verdict(last["plain"], last["highway"]) in done.stdout
    for metrics in last.values():
        assert f"mean cross-entropy {metrics.train_loss:.4f}" in done.stdout
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "runs/demo/2/curves.png" in done.stdout
    assert done.stderr == ""


@pytest.mark.slow
def test_an_interrupted_demo_saves_both_and_leaves_no_process(tmp_path: Path) -> None:
    command = [*COMMAND, "--epochs", "100000"]
    demo = subprocess.Popen(
        command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    runs = [tmp_path / "runs" / "demo" / "1" / name for name in ("plain", "highway")]
    while demo.poll() is None and not all((run / "metrics.jsonl").exists() for run in runs):
        time.sleep(0.1)
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate()  # returns when every process that holds the pipes has ended
    assert demo.returncode == 130
    assert "Traceback" not in errors
    assert f"verydeep worker {runs[0].parent.relative_to(tmp_path)}" in errors
    for run in runs:
        assert "interrupted" in (run / "events.log").read_text()
        assert Run.load(run).summary is None
    epochs = len(Run.load(runs[0]).metrics) + 1
    assert len(resume(runs[0], epochs=epochs).metrics) == epochs
