import json
import math
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from verydeep.errors import UserError
from verydeep.training import EpochMetrics, Run, RunSummary, TrainConfig

OLD_RUNS = sorted((Path(__file__).parents[1] / "fixtures" / "runs-0.1.0").glob("**/metrics.jsonl"))


@pytest.mark.parametrize("file", OLD_RUNS, ids=lambda file: file.parent.name)
def test_the_files_of_old_runs_are_read_and_written_again_byte_for_byte(file: Path) -> None:
    run = Run.load(file.parent)
    assert "".join(json.dumps(line.to_dict()) + "\n" for line in run.metrics) == file.read_text()
    if (summary := run.summary) is None:  # the convolutional one was interrupted
        assert file.parent.name == "convolutional"
        return
    assert json.dumps(summary.to_dict(), indent=1) + "\n" == (file.parent / "summary.json").read_text()
    assert summary.last == run.metrics[-1]


def test_what_was_not_measured_is_none_and_a_loss_without_a_value_infinite() -> None:
    line = EpochMetrics.from_dict({"epoch": 2, "lr": 0.1, "loss": None, "accuracy": 0.1, "seconds": 3.0, "auroc": 0.7})
    assert (line.loss, line.test_loss, line.extra) == (math.inf, None, {"auroc": 0.7})
    assert line.to_dict() == {"epoch": 2, "lr": 0.1, "loss": None, "accuracy": 0.1, "seconds": 3.0, "auroc": 0.7}
    with pytest.raises(FrozenInstanceError):
        line.loss = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    "line", ['{"epoch": 1, "loss": "low"}', '{"loss": 1}', '{"epoch": null}', '{"epoch": true}', "[]", "{"]
)
def test_a_damaged_line_is_one_error_that_names_it(tmp_path: Path, line: str) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1, "lr": 0.1}\n' + line + "\n")
    with pytest.raises(UserError, match=r"metrics.jsonl line 2 is damaged.*; repair or remove it"):
        _ = Run(tmp_path, TrainConfig()).metrics


@pytest.mark.parametrize(
    "values",
    [
        {"epochs": 1, "last": {}, "best": None},
        {"status": "finished", "epochs": "1", "last": {}, "best": None},
        {"status": "finished", "epochs": 1, "last": {"loss": 1}, "best": None},
        {"status": "finished", "epochs": 1, "last": {}, "best": [1]},
        {"status": "finished", "epochs": 1, "last": {}},
    ],
)
def test_a_damaged_summary_is_one_error_that_names_it(tmp_path: Path, values: object) -> None:
    (tmp_path / "summary.json").write_text(json.dumps(values))
    with pytest.raises(UserError, match=r"summary.json is damaged \(.*\); remove it, then resume the run"):
        _ = Run(tmp_path, TrainConfig()).summary


def test_unknown_entries_of_a_summary_are_ignored() -> None:
    known = {"status": "finished", "epochs": 0, "parameters": 3, "last": {}, "best": None}
    assert RunSummary.from_dict(known | {"note": "mine"}).to_dict() == known
