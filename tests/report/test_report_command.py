"""`verydeep report`: analyses where nobody has, and says in one line what is wrong."""

import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from verydeep.analysis import load_findings, save_findings
from verydeep.cli import main
from verydeep.errors import UserError
from verydeep.training import ModelConfig, Run, TrainConfig, train

from . import _made_up as made_up


@pytest.fixture
def run(trained: Run, tmp_path: Path) -> Path:
    """A copy to write into."""
    return Path(shutil.copytree(trained.path, tmp_path / "run"))


def sections(page: Path) -> list[str]:
    return re.findall(r'<section id="(\w+)"', page.read_text())


@pytest.fixture(scope="module")
def reported(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run nobody had looked into, and the report that was made of it."""
    folder = tmp_path_factory.mktemp("reported")
    run, page = shutil.copytree(trained.path, folder / "run"), folder / "pages" / "report.html"
    assert main(["report", str(run), "-o", str(page)]) == 0
    return run, page


@pytest.mark.slow
def test_a_run_nobody_looked_into_is_analysed_first(reported: tuple[Path, Path]) -> None:
    run, page = reported
    assert load_findings(run / "analysis").gates is not None
    assert sections(page) == [
        "training",
        "predictions",
        "gates",
        "routing",
        "lesions",
        "depth",
        "flow",
        "layers",
        "made",
        "glossary",
    ]
    assert re.search(r"For digits, this network needs (all|\d of) its 4 highway layers", page.read_text())


@pytest.mark.slow
def test_every_figure_is_drawn_beside_the_results(reported: tuple[Path, Path]) -> None:
    run, _ = reported
    pictures = {path.stem for path in (run / "analysis").glob("*.png")}
    assert pictures == {path.stem for path in (run / "analysis").glob("*.svg")}
    assert pictures == {"gates", "routing", "classes", "lesions", "lesions-loss", "usage", "flow"}


def test_what_was_found_is_shown_and_not_found_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_findings(made_up.findings(), run / "analysis")
    assert main(["report", str(run)]) == 0
    assert "needs 2 of its 6 highway layers" in (run / "report.html").read_text()
    assert re.fullmatch(r".*report.html: \d+ kB, self-contained; open it in a browser\n", capsys.readouterr().out)


@pytest.mark.slow
def test_an_analysis_that_was_killed_is_made_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("verydeep.analysis.class_routing", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main(["analyze", str(run)])
    assert (run / "analysis" / "gates.npz").exists()
    assert main(["report", str(run), "-o", str(run / "page.html")]) == 0
    assert {"gates", "routing", "lesions", "flow"} <= set(sections(run / "page.html"))


def test_an_analysis_of_earlier_weights_is_called_so(run: Path) -> None:
    save_findings(made_up.findings(), run / "analysis")
    later = (run / "analysis" / "gates.npz").stat().st_mtime + 10
    os.utime(run / "model.safetensors", (later, later))
    assert main(["report", str(run)]) == 0
    assert "show earlier weights" in (run / "report.html").read_text()
    os.utime(run / "analysis" / "gates.npz", (later + 10, later + 10))  # made again, and the rest was not
    assert main(["report", str(run)]) == 0
    assert "show earlier weights" in (run / "report.html").read_text()
    for file in (run / "analysis").glob("*.npz"):
        os.utime(file, (later + 10, later + 10))
    assert main(["report", str(run)]) == 0
    assert "show earlier weights" not in (run / "report.html").read_text()


def test_a_pruned_run_is_not_called_unfinished(run: Path) -> None:
    pruned = run.with_name("my pruned")
    assert main(["prune", str(run), "--tolerance", "5%", "--samples", "50", "--folder", str(pruned)]) == 0
    assert main(["report", str(pruned), "--no-analysis"]) == 0
    page = (pruned / "report.html").read_text()
    assert f"It was made from {run} by removing layers" in page
    assert f"verydeep prune {run} --folder &#39;my pruned&#39;" in page
    for wrong in ("can be continued", "epoch 0", "0 of 3", "run.toml", "came from a Python program"):
        assert wrong not in page


def test_the_report_of_a_fine_tuned_network_says_how_it_was_made(run: Path) -> None:
    tuned = run.with_name("tuned")
    options = ["--tolerance", "5%", "--samples", "50", "--fine-tune", "1", "--lr", "0.25"]
    assert main(["prune", str(run), *options, "--folder", str(tuned)]) == 0
    assert main(["report", str(tuned), "--no-analysis"]) == 0
    page = (tuned / "report.html").read_text()
    assert f"verydeep prune {run} --fine-tune 1 --lr 0.25 --folder tuned" in page
    assert "by removing layers, and then trained. It finished all 1 epochs." in page
    assert "came from a Python program" not in page


def test_a_disk_error_is_not_taken_for_data_that_are_gone(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(error: OSError) -> Any:
        def read(*_: object) -> None:
            raise UserError("cannot read config.json") from error

        return read

    monkeypatch.setattr("verydeep.cli._run_options.read_samples", failing(FileNotFoundError(errno.ENOENT, "gone")))
    assert main(["report", str(run)]) == 0
    assert "the page does not say how good the predictions are: cannot read config.json" in capsys.readouterr().err
    page = (run / "report.html").read_bytes()
    monkeypatch.setattr("verydeep.cli._run_options.read_samples", failing(OSError(errno.EIO, "input/output error")))
    assert main(["report", str(run)]) == 2
    assert (run / "report.html").read_bytes() == page


def test_a_run_that_becomes_unreadable_meanwhile_is_an_error_and_no_broken_run_in_the_page(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_run: Run) -> str:
        raise UserError("cannot read config.json: input/output error")

    monkeypatch.setattr("verydeep.training.run._listing.run_status", fail)
    assert main(["report", str(run), "--no-analysis"]) == 2
    assert "cannot read config.json" in capsys.readouterr().err
    assert not (run / "report.html").exists()


def test_the_analysis_can_be_left_out(run: Path) -> None:
    assert main(["report", str(run), "--no-analysis"]) == 0
    assert sections(run / "report.html") == ["training", "made", "glossary"]
    assert not (run / "analysis").exists()


def test_a_plain_network_has_a_report_that_says_what_it_lacks(trained: Run, tmp_path: Path) -> None:
    config = TrainConfig(trained.config.data, ModelConfig("plain-mlp", depth=3, width=6), epochs=1, threads=1)
    train(config, tmp_path / "plain")
    assert main(["report", str(tmp_path / "plain")]) == 0
    assert "This network has no highway or residual layers" in (tmp_path / "plain" / "report.html").read_text()


def test_a_run_that_diverged_at_once_has_a_report(run: Path) -> None:
    (run / "model.safetensors").unlink()
    (run / "metrics.jsonl").write_text('{"epoch": 1, "lr": 0.1, "loss": null, "accuracy": null, "seconds": 1.0}\n')
    (run / "summary.json").write_text('{"status": "diverged", "epochs": 1, "last": {"epoch": 1}, "best": null}')
    assert main(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert "It diverged after 1 of 3 epochs" in page
    assert "There are no weights to analyse" in page


def test_a_password_recorded_by_an_earlier_version_is_not_shown(run: Path) -> None:
    file = run / "environment.json"
    command = "verydeep search worker --study runs/s --storage postgresql://me:SECRET@host/db?password=SECRET"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"command": command}))
    assert main(["report", str(run), "--no-analysis"]) == 0
    page = (run / "report.html").read_text()
    assert "SECRET" not in page
    assert "postgresql://me@host/db" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "there is no run"),
        (["RUN", "-o", "report.pdf"], "must end in .html"),
        (["RUN", "-o", "RUN/config.json/report.html"], "cannot be written"),
    ],
)
def test_mistakes_get_one_line_and_leave_nothing(
    run: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(run.rglob("*"))
    given = [argument.replace("RUN", str(run)) for argument in arguments]
    assert main(["report", *given, "--no-analysis"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert sorted(run.rglob("*")) == before


def test_damaged_results_are_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_findings(made_up.findings(), run / "analysis")
    (run / "analysis" / "lesions.npz").write_bytes(b"no")
    assert main(["report", str(run)]) == 2
    assert "lesions.npz is not a result of an analysis, or is damaged" in capsys.readouterr().err
    assert not (run / "report.html").exists()
