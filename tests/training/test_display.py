"""Runs, seeds and studies describe themselves in one line, and show a table and a picture in a notebook."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from verydeep.analysis import lesion_study
from verydeep.data import DataConfig, Dataset
from verydeep.errors import UserError
from verydeep.search import Choices, Options, SearchConfig, start_search
from verydeep.studies import TrainingRecord, work
from verydeep.training import (
    Confusion,
    EpochMetrics,
    ModelConfig,
    OptimConfig,
    Run,
    RunInfo,
    TrainConfig,
    list_runs,
    train,
)

Configure = Callable[..., TrainConfig]


@pytest.fixture
def run(tiny: Dataset, configure: Configure, tmp_path: Path) -> Run:
    return train(configure(), tmp_path / "run", dataset=tiny)


def pictures(page: str) -> int:
    return page.count('src="data:image/png;base64,')


def test_a_run_says_how_far_it_is_and_what_it_reached(
    run: Run, tiny: Dataset, configure: Configure, tmp_path: Path, stop_after: Any
) -> None:
    accuracy = f"{run.measured.test_accuracy:.2%}" if run.measured else ""
    assert repr(run) == f"Run('{run.path}', 2 of 2 epochs, test accuracy {accuracy})"
    with pytest.raises(KeyboardInterrupt):
        train(configure(), tmp_path / "begun", dataset=tiny, progress=stop_after(1))
    assert repr(Run.load(tmp_path / "begun")).endswith("begun', 0 of 2 epochs)")
    diverged = train(configure(optim=OptimConfig(lr=1e9)), tmp_path / "diverged", dataset=tiny)
    assert ", diverged after 1 of 2 epochs" in repr(diverged)
    blind = replace(tiny, valid=None)
    trained = train(configure(evaluate_test=False), tmp_path / "blind", dataset=blind)
    assert ", training accuracy " in repr(trained)


@pytest.mark.parametrize("file", ["metrics.jsonl", "summary.json", "config.json"])
def test_damaged_files_never_raise(run: Run, file: str) -> None:
    for content in ("[]", '{"epoch": "one"}\n', "\x00\xff\n", "[" * 5000 + "\n"):
        (run.path / file).write_text(content)
        assert repr(run).startswith("Run(")
        assert "<b>Run" in run._repr_html_()


def test_a_folder_that_is_gone_is_named(run: Run) -> None:
    shutil.rmtree(run.path)
    assert repr(run) == f"Run('{run.path}', the folder does not exist)"
    assert "does not exist" in run._repr_html_()


def test_a_notebook_shows_a_table_and_the_curves_of_a_run(run: Run) -> None:
    page = run._repr_html_()
    assert "<th" in page
    assert "2 of 2 epochs" in page
    assert "validation set" in page
    assert pictures(page) == 1
    own = Run(run.path.with_name("<script>"), run.config)
    assert "<script>" not in own._repr_html_()


def test_a_run_draws_its_curves(run: Run, tmp_path: Path) -> None:
    figure = run.plot(str(tmp_path / "curves.svg"), theme="dark")
    assert (tmp_path / "curves.svg").exists()
    loss, accuracy = figure.axes
    assert [line.get_label() for line in loss.lines] == ["training batches", "validation set", "test set"]
    assert np.asarray(accuracy.lines[2].get_ydata()).tolist() == [line.test_accuracy for line in run.metrics]
    (run.path / "metrics.jsonl").write_text("")
    with pytest.raises(UserError, match="no epoch is complete yet"):
        run.plot()
    (run.path / "metrics.jsonl").write_text(json.dumps(EpochMetrics(1, loss=1.0, train_loss=2.0).to_dict()) + "\n")
    assert [line.get_label() for line in run.plot().axes[0].lines] == ["training set"]


def test_results_have_short_lines(run: Run) -> None:
    line = repr(list_runs(run.path.parent)[0])
    assert line.startswith("RunInfo('run', finished, highway-mlp on tiny, 2 of 2 epochs, test accuracy ")
    broken = RunInfo("x", "broken", 0.0, problem="config.json is not JSON")
    assert repr(broken) == "RunInfo('x', broken, config.json is not JSON)"
    assert repr(EpochMetrics(3, lr=0.1, loss=0.123456789)) == "EpochMetrics(epoch=3, lr=0.1, loss=0.123457, seconds=0)"
    trial = TrainingRecord(1, "failed", reason="out of memory", settings={"optim.lr": 0.1})
    assert repr(trial) == "TrainingRecord(1, failed, out of memory, optim.lr=0.1)"
    confused = Confusion(("a", "b"), torch.tensor([[3, 1], [0, 4]]), 0.5)
    assert repr(confused) == "Confusion(2 classes, 8 samples, accuracy 87.50%, loss 0.5)"
    assert pictures(confused._repr_html_()) == 1
    assert repr(Confusion((), torch.zeros(0, 0), 0.0)) == "Confusion(0 classes, 0 samples, loss 0)"


def test_a_study_describes_and_draws_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=4), epochs=1)
    study = start_search("some<b>study", SearchConfig(base, {"optim.lr": Choices((0.1, 0.2))}, Options(trials=1)))
    assert repr(study) == "SearchStudy('some<b>study', 1 trial of optim.lr, by loss)"
    assert pictures(study._repr_html_()) == 0
    assert work(study)
    page = study._repr_html_()
    assert "some&lt;b&gt;study: 1 of 1 trials done, 0 in training; best: trial 0 with loss " in page
    assert pictures(page) == 1
    assert len(study.plot().axes) == 1


def test_what_is_not_a_configuration_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train takes a TrainConfig, such as .*; got 'digits'"):
        train("digits", tmp_path)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"data must be a DataConfig, such as DataConfig\(\.\.\.\); got 'digits'"):
        TrainConfig("digits")  # type: ignore[arg-type]


def test_an_analysis_of_a_run_names_its_network(run: Run) -> None:
    with pytest.raises(UserError, match=r"model must be a torch module, got Run; a run has its network in run\.model"):
        lesion_study(run, (np.zeros((2, 4)), np.zeros(2)))  # type: ignore[arg-type]
