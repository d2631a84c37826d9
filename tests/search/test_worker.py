"""What a worker makes of a trial's end: a result, or a trial that waits for a better moment."""

import signal
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from _postgres import Server

from verydeep import lock
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock, is_held
from verydeep.models import Network
from verydeep.search import SearchStudy, check_search, open_search, read_search, start_search
from verydeep.studies import work
from verydeep.studies.worker import _training, _worker  # what these call is replaced
from verydeep.studies.worker._worker import TrainingCrashed
from verydeep.training import make_model

BASE = """
epochs = {epochs}
batch_size = 100
data = {{ source = "digits", validation = 0.2 }}
model = {{ width = 8, depth = 2 }}
{train}

[search]
trials = {trials}
{search}

[search.space]
{space}
"""

Begin = Callable[..., SearchStudy]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    def start(space: str, trials: int = 3, train: str = "", search: str = "", epochs: int = 1) -> SearchStudy:
        file, folder = tmp_path / "tiny.toml", tmp_path / "study"
        file.write_text(BASE.format(space=space, trials=trials, train=train, search=search, epochs=epochs))
        return start_search(folder, check_search(read_search(file), None))

    return start


LR = "optim.lr = {low = 0.01, high = 1.0, log = true}"


def test_settings_that_exclude_each_other_are_a_result_and_the_search_goes_on(begin: Begin) -> None:
    space = "optim.momentum = {choices = [0.0, 0.9]}\noptim.nesterov = {choices = [true, false]}"
    study = begin(space, trials=6, search="seed = 1")
    assert work(study)
    found = study.records()
    assert found[0].status == "failed"
    impossible = [r.settings == {"optim.momentum": 0.0, "optim.nesterov": True} for r in found]
    assert any(impossible)
    assert [r.status for r in found] == ["failed" if no else "finished" for no in impossible]
    assert all("momentum" in r.reason for r in found if r.status == "failed")


@pytest.mark.parametrize(
    ("space", "reason"),
    [
        ("data.validation = {low = 100, high = 5000}", "would hold out"),
        ("data.augment.pad = {low = 1, high = 30}", "pad"),
    ],
)
def test_settings_that_the_data_or_the_network_refuse_are_results(begin: Begin, space: str, reason: str) -> None:
    study = begin(space, trials=6)
    assert work(study)
    assert {r.status for r in study.records()} == {"failed", "finished"}
    assert all(reason in r.reason for r in study.records() if r.status == "failed")


@pytest.mark.parametrize(
    ("train", "words"),
    [('device = "cuda:77"', "device 'cuda:77' cannot be used"), ('[distill]\nteacher = "nowhere"', "nowhere")],
)
def test_what_is_wrong_with_the_machine_is_no_result(begin: Begin, train: str, words: str) -> None:
    study = begin(LR, train=train)
    with pytest.raises(UserError, match=words):
        work(study)
    assert {record.status for record in study.records()} == {"waiting"}


def test_a_damaged_run_is_no_result_but_said(begin: Begin) -> None:
    study = begin(LR, trials=1)
    run = study.folder / "trials" / "0000"
    assert work(study)
    for file in (study.folder / "study.json", study.folder / "journal.log"):
        file.unlink()
    (run / "summary.json").write_text("{}")
    study = begin(LR, trials=1)
    with pytest.raises(UserError, match="is damaged"):
        work(study)
    assert [record.status for record in study.records()] == ["waiting"]


def test_a_run_that_another_process_holds_is_waited_for(begin: Begin) -> None:
    study = begin(LR, trials=1)
    held = exclusive_lock(study.folder / "trials" / "0000" / "lock", "")
    held.__enter__()
    release = Timer(1.0, lambda: held.__exit__(None, None, None))
    release.start()
    assert work(study)
    release.join()
    assert [(record.status, record.attempts) for record in study.records()] == [("finished", 1)]


def test_what_nobody_expected_counts_as_a_death_until_it_is_a_result(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = begin(LR, trials=1)

    def exhausted(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(_worker, "train_run", exhausted)
    for _ in range(3):
        with pytest.raises(TrainingCrashed):
            work(study)
    monkeypatch.undo()
    assert work(study)
    (found,) = study.records()
    assert (found.status, found.reason) == ("failed", "3 workers died while training it; RuntimeError: out of memory")


def test_ctrl_c_while_a_trial_starts_is_not_lost(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    study = begin(LR, epochs=2)

    def slowly(*arguments: Any) -> Network:
        signal.raise_signal(signal.SIGINT)
        return make_model(*arguments)

    monkeypatch.setattr(_training, "make_model", slowly)
    assert not work(study)
    assert [(record.status, record.epochs) for record in study.records()] == [("waiting", 0)] * 3


def test_a_run_that_diverges_where_halving_looks_has_diverged_and_is_not_pruned(begin: Begin) -> None:
    space = "optim.lr = {choices = [0.1, 1e9]}"
    study = begin(space, 6, "divergence_factor = 2", 'metric = "loss"\nhalving = {first = 1, keep = 2}', epochs=2)
    assert work(study)
    found = study.records()
    exploded = [record.settings["optim.lr"] > 1 for record in found]
    assert any(exploded)
    assert [record.status == "diverged" for record in found] == exploded
    assert all((record.value is None) == (record.status == "diverged") for record in found)


def test_a_run_of_other_settings_is_not_taken_over(begin: Begin) -> None:
    study = begin(LR, trials=1)
    assert work(study)
    for file in (study.folder / "study.json", study.folder / "journal.log"):
        file.unlink()
    study = begin(LR.replace("0.01", "0.02"), trials=1)
    with pytest.raises(UserError, match="0000 was started with other settings"):
        work(study)
    assert [record.status for record in study.records()] == ["waiting"]


def test_a_study_of_a_journal_is_not_joined_on_a_server(begin: Begin, server: Server) -> None:
    folder = begin(LR).folder
    with pytest.raises(UserError, match="is recorded in its journal file"):
        open_search(folder, storage=server.url)


def test_whether_a_lock_is_held_is_asked_with_a_file_open_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS demands of an exclusive lock."""
    asked: list[bool] = []
    monkeypatch.setattr(lock, "_acquire", lambda stream, wait: asked.append(stream.writable()))
    (tmp_path / "lock").touch()
    assert not is_held(tmp_path / "lock")
    assert asked == [True]
