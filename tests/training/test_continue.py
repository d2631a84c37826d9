"""A training that is started again continues: the same command, or the same script, however often it is killed."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn
from torch.distributed import HashStore  # type: ignore[attr-defined]

from verydeep.cli import main
from verydeep.data import DataConfig, Dataset
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock
from verydeep.training import (
    DistillConfig,
    EpochMetrics,
    OptimConfig,
    Run,
    TrainConfig,
    TrainingProgress,
    differing_settings,
    resume,
    train,
)
from verydeep.training.step._process_group import _private_store

Configure = Callable[..., TrainConfig]
OPTIONS = ["train", "digits", "--depth", "2", "--width", "4", "--epochs", "2", "--threads", "1"]


def outcome(run: Run) -> tuple[list[EpochMetrics], bytes]:
    return [replace(line, seconds=0) for line in run.metrics], (run.path / "model.safetensors").read_bytes()


def files(path: Path) -> dict[str, tuple[int, bytes]]:
    return {str(f): (f.stat().st_mtime_ns, f.read_bytes()) for f in path.rglob("*") if f.is_file()}


def printed(capsys: pytest.CaptureFixture[str], code: int, *arguments: str | Path) -> list[str]:
    """The lines that the command prints, on stderr if it fails."""
    assert main([*map(str, arguments)]) == code
    out, err = capsys.readouterr()
    assert (err if code == 0 else out) == ""
    return (out if code == 0 else err).splitlines()


def test_a_script_that_is_started_again_continues_its_run(
    tmp_path: Path, tiny: Dataset, configure: Configure, stop_after: Callable[[int], TrainingProgress]
) -> None:
    config = configure()
    whole = train(config, tmp_path / "whole", dataset=tiny)
    for steps in (3, 15):
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "run", resume=True, dataset=tiny, progress=stop_after(steps))
    run = train(config, tmp_path / "run", resume=True, dataset=tiny)
    assert outcome(run) == outcome(whole)
    before = files(tmp_path / "run")
    assert train(config, tmp_path / "run", resume=True, dataset=tiny).summary == run.summary
    assert files(tmp_path / "run") == before


def test_other_settings_are_named_and_nothing_is_touched(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    before = files(run.path)
    other = configure(optim=OptimConfig(lr=0.2), seed=1)
    with pytest.raises(UserError, match=r"other settings: optim.lr 0.1 \(now 0.2\), seed 0 \(now 1\); choose another"):
        train(other, run.path, resume=True, dataset=tiny)
    with pytest.raises(UserError, match=r"epochs 2 \(now 9\); to train it for longer, resume it with epochs = 9"):
        train(configure(epochs=9), run.path, resume=True, dataset=tiny)
    with pytest.raises(UserError, match=r"other settings: dataset given in Python \(now from the configuration\)"):
        train(configure(), run.path, resume=True)
    assert files(run.path) == before


def test_the_device_the_threads_and_the_spelling_of_paths_may_change(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    one, other = (
        configure(
            data=DataConfig(f"{folder}/a.csv", test_path=f"{folder}/b.csv"),
            distill=DistillConfig(f"{folder}/teacher"),
            init=f"{folder}/first",
            device=device,
            threads=threads,
        )
        for folder, device, threads in (
            (tmp_path, "cpu", 1),
            (os.path.relpath(tmp_path / "link"), "auto", None),
        )
    )
    assert one.data != other.data
    assert differing_settings(one, other) == {}
    assert list(differing_settings(one, replace(one, init=None, patience=3))) == ["init", "patience"]
    known = configure(data=DataConfig("digits"))
    assert list(differing_settings(known, configure(data=DataConfig("./digits")))) == ["data.source"]


def test_a_diverged_run_is_not_trained_again(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    config = configure(optim=OptimConfig(lr=1e4), divergence_factor=2.0)
    runs = [train(config, tmp_path / "run", resume=True, dataset=tiny) for _ in range(2)]
    assert [run.summary.status for run in runs if run.summary is not None] == ["diverged", "diverged"]
    assert (tmp_path / "run" / "events.log").read_text().count("training from") == 1


def test_a_module_of_ones_own_continues(
    tmp_path: Path, tiny: Dataset, configure: Configure, stop_after: Callable[[int], TrainingProgress]
) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(16, 3))

    with pytest.raises(KeyboardInterrupt):
        train(configure(), tmp_path / "run", resume=True, model=make(), dataset=tiny, progress=stop_after(5))
    with pytest.raises(UserError, match=r"model given in Python \(now from the configuration\)"):
        train(configure(), tmp_path / "run", resume=True, dataset=tiny)
    run = train(configure(), tmp_path / "run", resume=True, model=make(), dataset=tiny)
    assert [line.epoch for line in run.metrics] == [1, 2]


def test_a_folder_is_needed_and_must_be_free_or_hold_the_run(
    tmp_path: Path, tiny: Dataset, configure: Configure
) -> None:
    with pytest.raises(UserError, match="resume=True needs the run's folder"):
        train(configure(), resume=True, dataset=tiny)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        train(configure(), tmp_path, resume=True, dataset=tiny)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_the_command_starts_then_says_that_it_has_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*OPTIONS, "--folder", str(tmp_path / "run"), "--continue"]
    first = printed(capsys, 0, *command)
    assert [line.split()[0] for line in first if line[0] != " "] == ["training", "epoch", "epoch", "finished"]
    again = printed(capsys, 0, *command)
    assert len(again) == 1
    assert again[0].startswith(f"{tmp_path / 'run'} has already finished after 2 epochs: training accuracy ")
    differs = printed(capsys, 2, *command, "--lr", "0.5")
    before = Run.load(tmp_path / "run").config.optim.lr
    changed = f"optim.lr {before} (now 0.5); choose another folder"
    assert differs == [f"verydeep: {tmp_path / 'run'} was started with other settings: {changed}"]
    assert printed(capsys, 0, *command, "--quiet") == []


def test_the_command_continues_and_refuses_a_run_that_is_being_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    printed(capsys, 0, *OPTIONS, "--epochs", "1", "--folder", path)
    whole = printed(capsys, 0, *OPTIONS, "--folder", tmp_path / "whole")
    run = Run.load(path)
    Run(path, replace(run.config, epochs=2)).change_config(patience_from=0)  # as if it had been killed after an epoch
    with exclusive_lock(path / "lock", "held by the test", wait=False):
        held = printed(capsys, 2, *OPTIONS, "--folder", path, "--continue")
    assert held == [f"verydeep: {path} is being trained by another process"]
    lines = printed(capsys, 0, *OPTIONS, "--folder", path, "--continue")
    assert lines[0] == f"continuing {path} after 1 of 2 epochs"
    assert lines[1].rsplit(maxsplit=1)[0] == whole[-2].rsplit(maxsplit=1)[0]  # all but the time
    assert outcome(Run.load(path)) == outcome(Run.load(tmp_path / "whole"))


def test_the_command_needs_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = printed(capsys, 2, *OPTIONS, "--continue")
    assert line.startswith("verydeep: --continue needs --folder FOLDER")


def test_several_seeds_continue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "seeds"
    path.mkdir()
    (path / "seeds.json").write_text('{"format": 1, "seeds": [0, 1], "training": {"data": {"source": "digits"}}}')
    (line,) = printed(capsys, 2, *OPTIONS, "--seeds", "3", "--folder", path, "--continue")
    assert line.endswith("other settings: model.depth, model.width, epochs, seeds")


def test_a_pruned_network_is_not_a_training(tmp_path: Path, tiny: Dataset, configure: Configure) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    summary = run.summary
    assert summary is not None
    run.finish(replace(summary, status="pruned"))
    with pytest.raises(UserError, match="was pruned from another run, not trained"):
        train(configure(), run.path, resume=True, dataset=tiny)
    assert resume(run).summary == replace(summary, status="pruned")


@pytest.mark.parametrize(("name", "value"), [("WORLD_SIZE", "abc"), ("WORLD_SIZE", "0"), ("LOCAL_RANK", "-1")])
def test_what_torchrun_would_not_set_is_a_line(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    (line,) = printed(capsys, 2, *OPTIONS, "--folder", tmp_path / "run")
    assert line.startswith(f"verydeep: the environment variable {name} must be a whole number")
    assert line.endswith(f"got '{value}'")
    assert not (tmp_path / "run").exists()


def test_restarted_processes_do_not_meet_in_the_part_of_the_store_that_killed_ones_used() -> None:
    store = HashStore()
    store.set("verydeep/question/1", "that of a killed process")
    for attempt in ("first", "second"):
        with ThreadPoolExecutor(2) as pool:
            zero, one = pool.map(lambda rank: _private_store(store, rank, 2), (0, 1))
        assert not one.check(["address"])
        zero.set("address", attempt)
        assert one.get("address") == attempt.encode()
