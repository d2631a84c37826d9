"""`verydeep analyze` and `verydeep prune` on a real run."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from verydeep.analysis import (
    DepthUsage,
    GreedyLesion,
    LesionStudy,
    PruneReport,
    depth_usage,
    load_findings,
    load_result,
)
from verydeep.cli import main
from verydeep.cli._run_options import data_label, parse_tolerance
from verydeep.cli.commands._analyze import moments, selected_parts
from verydeep.cli.commands._prune import PruneOptions, tuning_config
from verydeep.cli.views._analyze import ranges
from verydeep.data import DataConfig, Dataset, Split
from verydeep.errors import UserError
from verydeep.models import from_pretrained
from verydeep.training import (
    DistillConfig,
    EpochMetrics,
    Interrupted,
    ModelConfig,
    OptimConfig,
    Run,
    TrainConfig,
    TrainingProgress,
    load_data,
    make_model,
    resume,
    train,
)

CONFIG = TrainConfig(
    data=DataConfig("digits", validation=0.1),
    model=ModelConfig(depth=5, width=12, gate_bias=-1.0),
    optim=OptimConfig(lr=0.1),
    epochs=4,
    batch_size=20,
    threads=1,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(CONFIG, tmp_path_factory.mktemp("runs") / "digits")


@pytest.fixture
def run(trained: Run, tmp_path: Path) -> Run:
    """A copy that a test may change."""
    shutil.copytree(trained.path, tmp_path / "run")
    return Run.load(tmp_path / "run")


@pytest.fixture
def one_line(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command says that the user can mend."""

    def fails(*arguments: str | Path) -> str:
        assert main([str(argument) for argument in arguments]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("verydeep: ")
        assert printed.err.count("\n") == 1
        return printed.err

    return fails


@pytest.mark.slow
def test_analyze_answers_every_question(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(run.path), "--pairs", "--sample", "3"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    for words in (
        "The most important layers",
        "most biases decreased",
        "Layers used:",
        "Idle when closed alone",
    ):
        assert words in printed.out
    found = load_findings(run.path / "analysis")
    assert found.gates is not None
    assert (found.gates.sample, found.gates.samples) == (3, 144)
    assert found.routing is not None
    assert found.routing.classes == tuple("0123456789")
    assert found.lesions is not None
    assert found.lesions.split == "valid"
    assert found.usage is not None
    assert found.usage.tolerance == 0.001
    assert found.pairs is not None
    assert [flow.name for flow in found.flow] == [
        "highway, at initialisation",
        "highway, trained",
        "plain, at initialisation",
    ]
    summary = json.loads((run.path / "analysis" / "summary.json").read_text())
    assert summary["baseline"]["accuracy"] == 1 - found.lesions.baseline.error
    assert summary["usage"]["kept"] == list(found.usage.kept)
    assert summary["observations"]["biases_fell"] == found.observations.biases_fell


def test_lesions_of_the_command_are_those_of_the_network(run: Run, tmp_path: Path) -> None:
    command = ["analyze", str(run.path), "--only", "lesions", "--split", "test", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    study = load_result(tmp_path / "out" / "lesions.npz", LesionStudy)
    data = load_data(run, split="test")
    wrong = [(run.model(data.x, closed={k}).argmax(1) != data.y).double().mean().item() for k in range(4)]
    assert study.error == pytest.approx(wrong)
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".npz", ".json", ".png", ".svg"}
    assert load_findings(tmp_path / "out").gates is None


def test_analyze_prints_json_when_asked(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(run.path), "--only", "lesions", "--samples", "100", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["samples"] == 100
    assert len(summary["lesions"]) == 4


def test_the_beginning_is_the_networks_own(run: Run) -> None:
    from verydeep.data import load_dataset

    start = moments(run, "highway")["highway, at initialisation"]
    first = make_model(run.config, load_dataset(run.config.data))
    assert all(torch.equal(a, b) for a, b in zip(start.parameters(), first.parameters(), strict=True))


def test_another_run_can_stand_beside(run: Run, tmp_path: Path) -> None:
    plain = train(TrainConfig(**(vars(CONFIG) | {"model": ModelConfig("plain-mlp", 5, 12)})), tmp_path / "plain")
    assert main(["analyze", str(run.path), "--only", "flow", "--beside", str(plain.path)]) == 0
    names = [flow.name for flow in load_findings(run.path / "analysis").flow]
    assert names[2:] == ["plain, at initialisation", "plain, trained"]


@pytest.mark.slow
def test_an_unfinished_run_is_looked_at_with_a_warning(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    (run.path / "summary.json").unlink()
    assert main(["analyze", str(run.path), "--only", "gates"]) == 0
    assert capsys.readouterr().err == f"verydeep: {run.path} has not finished: these are its weights so far\n"


def test_mistakes_are_one_line(run: Run, tmp_path: Path, one_line: Callable[..., str]) -> None:
    assert "there is no run" in one_line("analyze", tmp_path / "none")
    assert "unknown part of the analysis 'lesion'; did you mean 'lesions'?" in one_line(
        "analyze", run.path, "--only", "gates,lesion"
    )
    assert "numbered 0 to 143" in one_line("analyze", run.path, "--sample", "144")
    assert "--sample -1" in one_line("analyze", run.path, "--sample=-1")
    assert "samples must be at least 1, got 0" in one_line("analyze", run.path, "--samples", "0")
    assert "there is no run" in one_line("analyze", run.path, "--beside", tmp_path / "none")
    assert not (run.path / "analysis").exists()  # said before the work
    for wrong in ("much", "-1%", "100%", "nan", ""):
        assert "give a loss of accuracy (or R2) such as 0.1%" in one_line("prune", run.path, f"--tolerance={wrong}")
    assert "--lr is for fine-tuning" in one_line("prune", run.path, "--lr", "0.1")
    assert "epochs must be at least 1" in one_line("prune", run.path, "--fine-tune", "0")
    assert "already exists" in one_line("prune", run.path, "--folder", run.path)
    (run.path / "model.safetensors").unlink()
    (run.path / "summary.json").unlink()
    assert "has no weights yet" in one_line("analyze", run.path)
    assert "has no weights yet" in one_line("prune", run.path)


def test_networks_without_highways_and_splits_that_are_not_there(tmp_path: Path, one_line: Callable[..., str]) -> None:
    config = TrainConfig(**(vars(CONFIG) | {"model": ModelConfig("plain-mlp", 3, 6), "data": DataConfig("digits")}))
    plain = train(config, tmp_path / "plain")
    assert "uses no highway layers" in one_line("prune", plain.path)
    assert "without validation data" in one_line("analyze", plain.path, "--split", "valid")
    assert "must be train, valid or test, not 'tests'" in one_line("analyze", plain.path, "--split", "tests")


def test_modules_of_ones_own_are_for_python(tmp_path: Path, one_line: Callable[..., str]) -> None:
    y = torch.arange(40) % 2
    part = Split(torch.randn(40, 4), y)
    own = train(CONFIG, tmp_path / "own", model=nn.Linear(4, 2), dataset=Dataset("x", part, None, part, ("a", "b")))
    assert "was trained with your own module" in one_line("analyze", own.path)


def test_data_given_in_python_must_be_named(trained: Run, tmp_path: Path, one_line: Callable[..., str]) -> None:
    from verydeep.data import load_dataset

    own = train(CONFIG, tmp_path / "own", dataset=load_dataset(CONFIG.data))
    assert "trained on data given in Python" in one_line("prune", own.path)
    assert "fine-tune it there" in one_line("prune", own.path, "--data", "digits", "--fine-tune", "1")
    assert main(["prune", str(own.path), "--data", "digits", "--samples", "200"]) == 0
    report = load_result(tmp_path / "own-pruned" / "prune.npz", PruneReport)
    assert (report.split, report.test) == ("digits", None)
    assert Run.load(tmp_path / "own-pruned").measured == EpochMetrics(0)


def test_the_pruned_network_is_a_run(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prune", str(run.path), "--tolerance", "3%", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["split"] == "valid"
    assert report["removed"]
    folder = Path(report["folder"])
    assert folder == run.path.with_name("run-pruned")
    test = load_data(run, split="test")
    pruned = from_pretrained(folder)
    assert torch.equal(pruned(test.x), run.model(test.x, closed=set(report["removed"])))
    assert report["test"][1]["error"] == pytest.approx((pruned(test.x).argmax(1) != test.y).double().mean().item())
    assert report["chosen"][1]["error"] <= report["chosen"][0]["error"] + 0.03 + 1e-9
    assert load_findings(run.path / "analysis").prune is not None

    assert main(["eval", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == pytest.approx(1 - report["test"][1]["error"])
    assert main(["analyze", str(folder), "--only", "gates,lesions"]) == 0
    assert main(["train", "--resume", str(folder)]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("pruned")
    assert str(folder) in line
    assert main(["runs", str(folder.parent), "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["run-pruned"]["status"] == "pruned"
    assert rows["run-pruned"]["depth"] == 5 - len(report["removed"])
    assert rows["run-pruned"]["test_accuracy"] == pytest.approx(1 - report["test"][1]["error"])


def test_a_network_that_needs_every_layer_is_not_called_smaller(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def keep_all(greedy: GreedyLesion, tolerance: float) -> DepthUsage:
        found = depth_usage(greedy, tolerance)
        return replace(found, kept=tuple(sorted((*found.kept, *found.idle))), idle=())

    monkeypatch.setattr("verydeep.report._layers_used.depth_usage", keep_all)
    assert main(["prune", str(run.path)]) == 0
    printed = capsys.readouterr().out
    assert "every layer is needed" in printed
    assert "smaller" not in printed


def test_what_was_found_is_kept_when_a_later_part_fails(
    run: Run, monkeypatch: pytest.MonkeyPatch, one_line: Callable[..., str]
) -> None:
    def fail(*_: object, **_options: object) -> None:
        raise UserError("no")

    monkeypatch.setattr("verydeep.analysis.lesion_study", fail)
    assert one_line("analyze", run.path, "--only", "gates,lesions") == "verydeep: no\n"
    assert load_findings(run.path / "analysis").gates is not None


def test_other_data_is_named_in_what_is_found(run: Run) -> None:
    assert main(["analyze", str(run.path), "--data", "digits", "--only", "lesions,routing", "--samples", "7"]) == 0
    summary = json.loads((run.path / "analysis" / "summary.json").read_text())
    assert (summary["source"], summary["samples"]) == ("digits", 7)
    found = load_findings(run.path / "analysis")
    assert found.lesions is not None
    assert found.lesions.split == "digits"
    assert found.routing is not None
    assert len(found.routing.classes) < 10  # seven samples cannot have all


def test_a_file_or_folder_called_test_is_no_test_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test").mkdir()
    monkeypatch.chdir(tmp_path / "test")
    names = [data_label(source, "train") for source in (None, "../new/test.csv", ".", "../test", "mnist")]
    assert names == ["train", "test.csv", "test/", "test/", "mnist"]


def test_a_pruned_network_never_began(run: Run) -> None:
    assert main(["prune", str(run.path), "--tolerance", "3%", "--samples", "50"]) == 0
    folder = run.path.with_name("run-pruned")
    assert main(["analyze", str(folder), "--only", "flow", "--samples", "50"]) == 0
    names = [flow.name for flow in load_findings(folder / "analysis").flow]
    assert names == ["highway, trained", "plain, at initialisation"]


@pytest.mark.slow
def test_the_folder_may_be_here_and_brackets_are_no_markup(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = run.path.rename(run.path.with_name("run[big]"))
    monkeypatch.chdir(here)
    for command in (["prune", ".", "--samples", "20"], ["eval", "."], ["analyze", ".", "--only", "gates"]):
        assert main(command) == 0
    assert main(["eval", str(here)]) == 0
    assert f"are in {here}" in capsys.readouterr().out
    assert (here.parent / "run[big]-pruned" / "prune.json").exists()


def test_prune_prints_before_and_after(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["prune", str(run.path), "--tolerance", "0.9", "--split", "train", "--samples", "50"]
    assert main([*command, "--folder", str(tmp_path / "small")]) == 0
    printed = capsys.readouterr()
    assert Run.load(tmp_path / "small").model.config.depth == 1  # no highway layer is needed
    for words in (
        "before",
        "│ layers ",
        "accuracy, training set",
        "accuracy, test set",
        "multiply-adds",
        "x as fast",
    ):
        assert words in printed.out


def test_what_is_left_trains_on(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tuned"
    command = ["prune", str(run.path), "--tolerance", "5%", "--fine-tune", "2", "--lr", "0.05", "--json"]
    assert main([*command, "--folder", str(folder)]) == 0
    report = json.loads(capsys.readouterr().out)
    tuned = Run.load(folder)
    assert len(tuned.metrics) == 2
    assert tuned.config.optim.lr == 0.05
    assert tuned.model.highway_depth == len(report["kept"])
    test = load_data(run, split="test")
    assert report["tuned"]["error"] == pytest.approx((tuned.model(test.x).argmax(1) != test.y).double().mean().item())
    smaller = run.model(test.x, closed=set(report["removed"]))
    assert not torch.equal(tuned.model(test.x), smaller)


def test_fine_tuning_that_was_stopped_leaves_what_pruning_found(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise Interrupted(run)

    monkeypatch.setattr("verydeep.training.train", stop)
    folder = tmp_path / "tuned"
    assert main(["prune", str(run.path), "--samples", "50", "--fine-tune", "1", "--folder", str(folder)]) == 130
    assert load_result(folder / "prune.npz", PruneReport).tuned is None


def test_fine_tuning_that_diverges_leaves_what_pruning_found(run: Run, tmp_path: Path) -> None:
    folder, diverge = tmp_path / "tuned", ["--fine-tune", "1", "--lr", "1e38"]
    assert main(["prune", str(run.path), "--samples", "50", *diverge, "--folder", str(folder)]) == 0
    assert Run.load(folder).summary.status == "diverged"  # type: ignore[union-attr]
    assert load_result(folder / "prune.npz", PruneReport).tuned is None


def test_fine_tuning_takes_no_hints_again(run: Run) -> None:
    taught = DistillConfig(teacher="somewhere", hint_epochs=3, hint="conv2", guided="highway5")
    config = replace(run.config, epochs=9, distill=taught)
    tuning = tuning_config(Run(run.path, config), PruneOptions(run.path, fine_tune=2))
    assert tuning.distill == replace(taught, hint_epochs=0)


def test_fine_tuning_that_was_stopped_goes_on_to_the_same_weights(run: Run, tmp_path: Path) -> None:
    from verydeep.analysis import prune

    class Stop(TrainingProgress):
        def epoch(self, metrics: object) -> None:
            raise KeyboardInterrupt

    whole = train(CONFIG, tmp_path / "whole", model=prune(run.model, [1]))
    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train(CONFIG, tmp_path / "stopped", model=prune(run.model, [1]), progress=Stop())
    again = resume(tmp_path / "stopped")
    assert again.model.highway_depth == 3
    for a, b in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_network_that_was_given_and_never_saved_cannot_go_on(run: Run, tmp_path: Path) -> None:
    from verydeep.analysis import prune

    class Stop(TrainingProgress):
        def start(self, *_: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train(CONFIG, tmp_path / "stopped", model=prune(run.model, [1]), progress=Stop())
    with pytest.raises(UserError, match="was stopped before the model was saved"):
        resume(tmp_path / "stopped")


def test_shares_parts_and_ranges_are_read_and_written_as_people_do() -> None:
    assert parse_tolerance("0.1%") == pytest.approx(0.001)
    assert parse_tolerance(" 0.001 ") == 0.001
    assert parse_tolerance("0") == 0
    assert selected_parts(("lesions", "gates"), False) == ["gates", "lesions"]
    assert selected_parts(("gates",), True) == ["gates", "pairs"]
    assert "pairs" not in selected_parts((), False)
    assert ranges([6, 2, 3, 4, 11]) == "3-5, 7, 12"  # counted from 1
    assert ranges(()) == "none"
    assert np.isfinite(parse_tolerance("99.9%"))
