"""Full disks, damaged files, and two processes on one run: nothing older is lost, and one line says what to do."""

import errno
import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import nn

from verydeep.cli import main
from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock
from verydeep.training import (
    EpochMetrics,
    OptimConfig,
    Run,
    TrainConfig,
    TrainingProgress,
    derive_run,
    resume,
    train,
)
from verydeep.training.run._checkpoint import Position, load_checkpoint, save_checkpoint
from verydeep.training.step._optimiser import make_optimiser

OPTIONS = ["--data.source", "digits", "--model.depth", "3", "--model.width", "6", "--threads", "1"]


class Stop(TrainingProgress):
    """Leaves at once after some epochs, as a kill does."""

    def __init__(self, after: int) -> None:
        self.after = after

    def epoch(self, metrics: EpochMetrics) -> None:
        if metrics.epoch == self.after:
            raise KeyboardInterrupt


def stopped(config: TrainConfig, path: Path, dataset: Dataset, after: int = 2) -> list[Path]:
    """A run that is cut off; its checkpoints, newest first."""
    with pytest.raises(KeyboardInterrupt):
        train(config, path, dataset=dataset, progress=Stop(after))
    return sorted((path / "checkpoint").iterdir(), reverse=True)


def outcome(run: Run) -> tuple[list[EpochMetrics], bytes]:
    lines = [replace(line, seconds=0) for line in run.metrics]
    return lines, (run.path / "model.safetensors").read_bytes()


def test_two_processes_do_not_write_one_derived_run(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    parent = train(configure(epochs=1), tmp_path / "parent", dataset=tiny)
    arguments = parent, tmp_path / "run", parent.model, "pruned", EpochMetrics(0)
    with (
        exclusive_lock(tmp_path / "run" / "lock", ""),
        pytest.raises(UserError, match="another process is writing this run"),
    ):
        derive_run(*arguments)
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["lock"]
    assert len(derive_run(*arguments).metrics) == 1
    with pytest.raises(UserError, match="already exists"):
        derive_run(*arguments)


def test_weights_that_were_deleted_are_not_said_to_have_diverged(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    run = train(configure(epochs=1), tmp_path / "run", dataset=tiny)
    (run.path / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"has no weights: its model.safetensors has been deleted"):
        _ = Run.load(run.path).model


@pytest.mark.parametrize("damage", ["truncated", "empty", "one bit", "text", "another format"])
def test_the_older_checkpoint_is_used_when_the_newest_is_damaged(
    damage: str, tmp_path: Path, tiny: Dataset, configure: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = train(configure(epochs=3), tmp_path / "whole", dataset=tiny)
    newest, _ = stopped(configure(epochs=3), tmp_path / "run", tiny)
    data = newest.read_bytes()
    middle = len(data) - 20
    newest.write_bytes(
        {
            "truncated": data[:middle],
            "empty": b"",
            "one bit": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "text": b"not a checkpoint",
            "another format": data.replace(b'\\"format\\": 1', b'\\"format\\": 7'),
        }[damage]
    )
    run = resume(tmp_path / "run", dataset=tiny)
    assert outcome(run) == outcome(whole)
    assert capsys.readouterr().err.startswith(f"verydeep: {newest} ")
    assert f"skipped a checkpoint: {newest}" in (run.path / "events.log").read_text()
    assert newest.with_suffix(".damaged").exists()


def test_a_checkpoint_of_the_first_epoch_is_a_checkpoint(
    tmp_path: Path, tiny: Dataset, configure: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = train(configure(epochs=2), tmp_path / "whole", dataset=tiny)
    newest, first = stopped(configure(epochs=2), tmp_path / "run", tiny, after=1)
    newest.unlink()  # as if the process had been killed between the line of metrics and the checkpoint
    assert first.stem.startswith("000000-")
    assert outcome(resume(tmp_path / "run", dataset=tiny)) == outcome(whole)
    assert "no checkpoint" not in capsys.readouterr().err


def test_damaged_checkpoints_do_not_push_out_whole_ones(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    newest, _ = stopped(configure(epochs=9), tmp_path / "run", tiny, after=3)
    newest.write_bytes(b"")
    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path / "run", dataset=tiny, progress=Stop(4))
    assert len(list((tmp_path / "run" / "checkpoint").glob("*.safetensors"))) == 2
    resume(tmp_path / "run", dataset=tiny)


def test_without_any_whole_checkpoint_one_line_says_so(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    checkpoints = stopped(configure(), tmp_path / "run", tiny)
    for checkpoint in checkpoints:
        checkpoint.write_bytes(b"\0" * 100)
    with pytest.raises(UserError, match="none of the checkpoints can be used, so start a new run") as error:
        resume(tmp_path / "run", dataset=tiny)
    assert all(str(checkpoint) in str(error.value) for checkpoint in checkpoints)
    assert "\n" not in str(error.value)


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    def module(width: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(16, width), nn.Linear(width, 3))

    with pytest.raises(KeyboardInterrupt):
        train(configure(), tmp_path / "run", model=module(4), dataset=tiny, progress=Stop(1))
    with pytest.raises(UserError, match="does not fit the model"):
        resume(tmp_path / "run", model=module(5), dataset=tiny)
    resume(tmp_path / "run", model=module(4), dataset=tiny)  # and nothing was spoilt


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_checkpoint(folder, *model_and_optimiser(), Position(3, 4, (5.5, 6.0)))
    return next(folder.iterdir())


def model_and_optimiser() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Linear(3, 2)
    optimiser = make_optimiser(model, OptimConfig(lr=0.01, weight_decay=0.0))
    model(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    return model, optimiser


@given(st.data())
def test_no_change_of_any_byte_goes_unnoticed(checkpoint: Path, data: st.DataObject) -> None:
    good = checkpoint.read_bytes()
    place = data.draw(st.integers(0, len(good) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != good[place]))
    assume_not_blank(good, place, byte)
    folder = checkpoint.parent.parent / "damaged"
    folder.mkdir(exist_ok=True)
    (folder / checkpoint.name).write_bytes(good[:place] + bytes([byte]) + good[place + 1 :])
    with pytest.raises(UserError):
        load_checkpoint(folder, *model_and_optimiser())


def assume_not_blank(good: bytes, place: int, byte: int) -> None:
    """Spaces that pad the header mean nothing, so one may become another blank."""
    from hypothesis import assume

    header = struct.unpack("<Q", good[:8])[0]
    blank = b" \t\n\r"
    assume(not (place < 8 + header and good[place] in blank and byte in blank))


def test_a_last_line_of_metrics_that_was_cut_off_is_left_out(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    whole = train(configure(epochs=3), tmp_path / "whole", dataset=tiny)
    stopped(configure(epochs=3), tmp_path / "run", tiny)
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 3, "lo')
    assert len(Run.load(tmp_path / "run").metrics) == 2
    assert outcome(resume(tmp_path / "run", dataset=tiny)) == outcome(whole)


def test_an_epoch_whose_metrics_are_lost_is_trained_again(
    tmp_path: Path, tiny: Dataset, configure: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = train(configure(epochs=2), tmp_path / "whole", dataset=tiny)
    stopped(configure(epochs=2), tmp_path / "run", tiny)
    file = tmp_path / "run" / "metrics.jsonl"
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + bytes(len(second)))  # what a file system may leave after a crash
    run = resume(tmp_path / "run", dataset=tiny)
    assert outcome(run) == outcome(whole)
    assert "metrics.jsonl was damaged: what it lacks is trained again, after 1 epoch" in capsys.readouterr().err
    summary = run.summary
    assert summary is not None
    assert summary.last is not None
    assert summary.last.epoch == 2


@pytest.mark.parametrize("name", ["checkpoint", "metrics.jsonl", "model.safetensors", "summary.json", "events.log"])
def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(
    name: str, tmp_path: Path, unvalidated: Dataset, configure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(configure(epochs=3), tmp_path / "whole", dataset=unvalidated)
    stopped(configure(epochs=3), tmp_path / "run", unvalidated)
    real = os.fsync

    def full(descriptor: int) -> None:
        if f"run/{name}" in os.readlink(f"/proc/self/fd/{descriptor}").replace("/.", "/"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="the disk is full") as error:
        resume(tmp_path / "run", dataset=unvalidated)
    assert f"{tmp_path / 'run'} can be resumed" in str(error.value)
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    assert outcome(resume(tmp_path / "run", dataset=unvalidated)) == outcome(whole)
    assert list((tmp_path / "run").rglob("*.partial")) == []


@pytest.mark.slow
def test_a_disk_that_fills_up_while_a_file_is_written(tmp_path: Path) -> None:
    """The system's own limit on the size of a file: the checkpoint of this network is larger."""
    path = tmp_path / "run"
    limited = (
        "import resource, sys; from verydeep.cli import main; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)); sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["train", *OPTIONS, "--epochs", "1", "--model.width", "20", "--folder", str(path)]
    done = subprocess.run([sys.executable, "-c", limited, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "the disk is full" in done.stderr
    assert list(path.rglob("*.partial")) == []
    assert main(["train", "--resume", str(path), "--quiet"]) == 0


def test_a_file_where_a_folder_must_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["train", *OPTIONS, "--folder", str(tmp_path / "file" / "run")]) == 2
    printed = capsys.readouterr().err
    assert "cannot be written (Not a directory)" in printed
    assert printed.count("\n") == 1


def test_two_processes_cannot_train_one_run(
    tmp_path: Path, tiny: Dataset, configure: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    assert main(["train", *OPTIONS, "--epochs", "1", "--folder", str(path), "--quiet"]) == 0
    (path / "summary.json").unlink()
    before = (path / "events.log").read_text()
    with exclusive_lock(path / "lock", ""):
        assert main(["train", "--resume", str(path)]) == 2
    assert capsys.readouterr().err == f"verydeep: {path} is being trained by another process\n"
    assert (path / "events.log").read_text() == before


def test_two_that_start_at_once_do_not_share_a_folder(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    path = tmp_path / "run"
    with exclusive_lock(path / "lock", ""), pytest.raises(UserError, match="another process"):
        train(configure(), path, dataset=tiny)
    assert [file.name for file in path.iterdir()] == ["lock"]


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    stopped(configure(epochs=3), tmp_path / "run", tiny)
    left = [tmp_path / "run" / ".config.json.x1.partial", tmp_path / "run" / "checkpoint" / ".000001.x.partial"]
    for file in left:
        file.write_text("half")
    resume(tmp_path / "run", dataset=tiny)
    assert not any(file.exists() for file in left)


def test_a_start_that_was_killed_at_once_leaves_the_folder_free(tmp_path: Path, tiny: Dataset, configure: Any) -> None:
    path = tmp_path / "run"
    path.mkdir()
    for name in ("lock", "environment.json", ".config.json.x1.partial"):
        (path / name).write_text("")
    run = train(configure(), path, dataset=tiny)
    assert json.loads((run.path / "environment.json").read_text())["threads"] == 1
