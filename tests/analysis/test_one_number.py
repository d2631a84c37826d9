"""`analyze`, `prune`, `report` and `explore` say the same about the same run, and search for it once."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from verydeep.analysis import DepthUsage, PruneReport, load_findings, load_result
from verydeep.cli import main
from verydeep.training import Run


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a noisy table of 500 rows, some of which are held out for validation."""
    folder = tmp_path_factory.mktemp("table")
    random = np.random.default_rng(0)
    x = random.normal(size=(500, 4))
    y = np.abs(x[:, 0]) + x[:, 1] + 0.3 * random.normal(size=500) > 0.5
    names = np.where(y, "yes", "no")
    rows = [",".join([*(f"{value:.4f}" for value in row), name]) for row, name in zip(x, names, strict=True)]
    (folder / "table.csv").write_text("\n".join(["a,b,c,d,target", *rows]) + "\n")
    options = ["--depth", "8", "--model.width", "10", "--lr", "0.1", "--epochs", "30", "--model.gate-bias", "-1"]
    assert main(["train", str(folder / "table.csv"), *options, "--folder", str(folder / "run"), "--quiet"]) == 0
    return folder / "run"


@pytest.fixture
def run(table: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(table, tmp_path / "run"))


def said(text: str) -> tuple[str, ...]:
    """The number, its interval and its split, as printed; and the same of the training set."""
    text = re.sub(r"\s+", " ", text)  # lines may be broken
    found = re.search(
        r"used: (\d+) of (\d+) layers \(95 % interval (\d+) to (\d+)\), measured on ([\d,]+) samples of the (\w+ set)",
        text,
    )
    beside = re.search(r"On ([\d,]+) samples of the training set, as in the paper: (\d+) of \d+ layers", text)
    assert found is not None, text
    assert beside is not None, text
    return *found.groups(), *beside.groups()


def importance_in(page: Path) -> dict[str, Any]:
    """What an interactive page says about its layers."""
    data = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page.read_text(), re.S)
    assert data is not None
    importance: dict[str, Any] = json.loads(data[1])["importance"]
    return importance


def test_analyze_prune_report_and_explore_give_one_number(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["analyze", str(run)]) == 0
    analysed = said(capsys.readouterr().out)
    assert analysed[5] == "validation set"

    def again(*_: object, **__: object) -> None:
        raise AssertionError("the search was repeated")

    monkeypatch.setattr("verydeep.report._layers_used.greedy_lesions", again)
    assert main(["prune", str(run)]) == 0
    printed = capsys.readouterr()
    assert said(printed.out) == analysed
    assert printed.err.count("\n") == 1
    assert f"reusing {run / 'analysis' / 'usage.npz'}" in printed.err
    report = load_result(run.with_name("run-pruned") / "prune.npz", PruneReport)
    used, total = int(analysed[0]), int(analysed[1])
    assert (len(report.kept), len(report.layers), report.split) == (used, total, "valid")

    assert main(["report", str(run)]) == 0
    page = re.sub(r"\s+", " ", (run / "report.html").read_text())
    assert f'<p class="big">{used} <span>of {total} highway layers' in page
    assert f"95% interval: {analysed[2]} to {analysed[3]} layers" in page
    assert f"as in the paper: {analysed[7]} of {total} layers" in page
    assert "of the validation set" in page
    assert main(["explore", str(run), "--no-open"]) == 0
    importance = importance_in(run / "explore.html")
    assert len(importance["idle"]) == total - used
    assert importance["samples"] == f"{analysed[4]} samples of the validation set"
    summary = json.loads((run / "analysis" / "summary.json").read_text())
    assert importance["idle"] == sorted(summary["usage"]["idle"])
    assert summary["usage"]["layers_used"] == used == summary["observations"]["layers_used"]
    assert summary["usage"]["interval"] == [int(analysed[2]), int(analysed[3])]
    assert summary["usage"]["split"] == "valid"


@pytest.mark.slow
def test_what_prune_found_serves_analyze(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prune", str(run)]) == 0
    pruned = said(capsys.readouterr().out)
    assert load_findings(run / "analysis").usage is not None
    assert main(["analyze", str(run), "--only", "usage"]) == 0
    printed = capsys.readouterr()
    assert "reusing" in printed.err
    assert said(printed.out) == pruned
    assert main(["analyze", str(run), "--only", "usage", "--split", "test"]) == 0  # never counted on the test data
    assert said(capsys.readouterr().out) == pruned


@pytest.mark.slow
def test_a_result_for_other_weights_samples_or_layers_is_not_used(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["analyze", str(run), "--only", "usage"]
    assert main([*command, "--samples", "20"]) == 0
    assert "reusing" not in capsys.readouterr().err
    assert main(command) == 0
    assert "reusing" not in capsys.readouterr().err
    from verydeep.models import save_weights

    model = Run.load(run).model
    model.classifier.weight.data[0, 0] += 1e-3  # type: ignore[union-attr]
    save_weights(model, run / "model.safetensors")
    assert main(command) == 0
    assert "reusing" not in capsys.readouterr().err
    (run / "analysis" / "usage.npz").write_bytes(b"damaged")
    assert main(command) == 0
    assert "reusing" not in capsys.readouterr().err


@pytest.mark.slow
def test_another_tolerance_needs_no_other_search(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(run), "--only", "usage"]) == 0
    assert main(["prune", str(run), "--tolerance", "30%"]) == 0
    assert "reusing" in capsys.readouterr().err
    usage = load_result(run / "analysis" / "usage.npz", DepthUsage)
    report = load_result(run.with_name("run-pruned") / "prune.npz", PruneReport)
    assert usage.tolerance == report.tolerance == 0.3
    assert usage.kept == report.kept
    assert json.loads((run / "analysis" / "summary.json").read_text())["usage"]["kept"] == list(usage.kept)


@pytest.mark.slow
def test_without_validation_data_the_training_data_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    options = ["--depth", "4", "--model.width", "8", "--epochs", "1", "--data.validation", "0"]
    assert main(["train", "digits", *options, "--folder", str(folder), "--quiet"]) == 0
    assert main(["explore", str(folder), "--no-open"]) == 0  # first, so that it has no analysis to read
    importance = importance_in(folder / "explore.html")
    assert importance["samples"].endswith("samples of the training set")
    capsys.readouterr()
    assert main(["analyze", str(folder), "--only", "usage"]) == 0
    printed = capsys.readouterr()
    assert "reusing" in printed.err
    assert re.search(r"about 60 % of the layers are idle \(MNIST\) *│ *[\d.]+% idle when closed together", printed.out)
    assert importance["samples"] in " ".join(printed.out.split())
    assert "holds out no validation data" in printed.out
    assert main(["analyze", str(folder), "--only", "routing"]) == 0
    assert "the paper's observation" not in capsys.readouterr().out  # a table without rows
    usage = load_result(folder / "analysis" / "usage.npz", DepthUsage)
    assert importance["idle"] == sorted(usage.idle)
    assert importance["order"] == list(usage.greedy.order)


@pytest.mark.slow
def test_a_page_with_few_samples_leaves_the_analysis_alone(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(run), "--only", "usage"]) == 0
    before = (run / "analysis" / "usage.npz").read_bytes()
    assert main(["explore", str(run), "--samples", "20", "--no-open"]) == 0
    assert importance_in(run / "explore.html")["samples"] == "20 samples of the validation set"
    assert (run / "analysis" / "usage.npz").read_bytes() == before
    assert main(["explore", str(run), "--samples", "0", "--no-open"]) == 2
    assert "at least 1" in capsys.readouterr().err


def test_a_digest_of_samples_on_disk_reads_some_of_them_only() -> None:
    from verydeep.data import Split
    from verydeep.report._layers_used import _MOST_ROWS, _some_rows

    x, y = torch.arange(4000).view(-1, 1), torch.zeros(4000, dtype=torch.int64)
    assert len(_some_rows(Split(x, y))) == 4000
    some = _some_rows(Split(x, y, lambda values: values.float()))  # type: ignore[arg-type]
    assert (len(some), int(some[0]), int(some[-1])) == (_MOST_ROWS, 0, 3999)
