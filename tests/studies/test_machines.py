"""Workers on machines that share a server but no disk: folders that the others cannot see."""

import json
import signal
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest
from _postgres import Server
from optuna.trial import create_trial

from verydeep.cli import main
from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.search import Choices, Options, SearchConfig, open_search, start_search
from verydeep.studies import Budget, Group, Study, open_study, start_study, work
from verydeep.studies._artifacts import Artifacts
from verydeep.studies.worker import _worker
from verydeep.training import DistillConfig, ModelConfig, Run, TrainConfig

CONFIG = TrainConfig(DataConfig("digits", validation=0.2), ModelConfig(depth=2, width=8), epochs=2, batch_size=200)
STUDENT = Group("student", replace(CONFIG, distill=DistillConfig(weight=0.5)), after="teacher")
TEACHER = Group("teacher", replace(CONFIG, seed=1))


def losses(path: Path) -> list[float | None]:
    return [line.valid_loss for line in Run.load(path).metrics]


def teach_and_learn(first: Path, second: Path, server: Server, artifacts: Path | None) -> tuple[Study, list[str]]:
    """Train the teacher on one machine and its student on another."""
    study = start_study(first, [TEACHER, STUDENT], storage=server.url, artifacts=artifacts)
    assert not work(study, budget=Budget(epochs=2))
    lines: list[str] = []
    assert work(open_study(second, storage=server.url), report=lines.append)
    return study, lines


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "study"
    assert work(start_study(folder, [TEACHER, STUDENT]))
    return folder


@pytest.mark.slow
def test_a_teacher_comes_through_the_artifact_store(tmp_path: Path, server: Server, alone: Path) -> None:
    first, second, shared = tmp_path / "a" / "taught", tmp_path / "b" / "taught", tmp_path / "shared"
    study, lines = teach_and_learn(first, second, server, shared)
    assert lines == ["student: finished after 2 epochs"]
    assert losses(second / "student") == losses(alone / "student")
    assert (second / "teacher" / "model.safetensors").read_bytes() == (
        first / "teacher" / "model.safetensors"
    ).read_bytes()
    assert not (first / "student").exists()
    assert [record.status for record in study.records()] == ["finished", "finished"]


@pytest.mark.slow
def test_without_an_artifact_store_the_teacher_is_trained_again(tmp_path: Path, server: Server, alone: Path) -> None:
    first, second = tmp_path / "a" / "untaught", tmp_path / "b" / "untaught"
    study, lines = teach_and_learn(first, second, server, None)
    assert lines == [
        "teacher: trained again, because this machine does not have it",
        "student: finished after 2 epochs",
    ]
    assert losses(second / "student") == losses(alone / "student")
    assert [record.attempts for record in study.records()] == [1, 1]


@pytest.mark.slow
def test_damaged_weights_in_the_artifact_store_are_noticed(tmp_path: Path, server: Server) -> None:
    first, second, shared = tmp_path / "a" / "damaged", tmp_path / "b" / "damaged", tmp_path / "shared"
    study = start_study(first, [TEACHER, STUDENT], storage=server.url, artifacts=shared)
    assert not work(study, budget=Budget(epochs=2))
    files = json.loads(study.attempts()["teacher"].trials[0].user_attrs["run_files"])
    key, _ = files["model.safetensors"]
    (shared / key).write_bytes(b"something else")
    with pytest.raises(UserError, match=r"model\.safetensors in the artifact store is damaged"):
        work(open_study(second, storage=server.url))
    assert not (second / "teacher").exists()
    assert "damaged" in study.records()[1].reason
    (shared / key).unlink()
    with pytest.raises(UserError, match="cannot fetch"):
        work(open_study(second, storage=server.url))
    for damaged in ("3", '{"config.json": ["../../x", ""]}'):
        trial = create_trial(value=0.0, user_attrs={"run_files": damaged})
        with pytest.raises(UserError, match="the list of its files in the storage is damaged"):
            Artifacts(shared).download(trial, second / "teacher")


@pytest.mark.slow
def test_the_best_run_of_a_search_is_fetched_from_another_machine(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    config = SearchConfig(CONFIG, {"model.depth": Choices((2, 3, 4))}, Options(trials=3))
    here, there = tmp_path / "here" / "found", tmp_path / "there" / "found"
    start_search(here, config, storage=server.url, artifacts=tmp_path / "shared")
    assert main(["worker", str(there), "--storage", server.url, "--quiet"]) == 0
    assert main(["search", "best", str(here), "--storage", server.url]) == 0
    best = max(open_search(here, storage=server.url).records(), key=lambda record: record.value or 0)
    assert f"the run: {here / best.name}" in capsys.readouterr().out
    assert losses(here / best.name) == losses(there / best.name)
    assert main(["eval", str(here / best.name), "--json"]) == 0


@pytest.mark.slow
def test_a_training_whose_checkpoint_is_elsewhere_starts_again_to_the_same_bits(tmp_path: Path, server: Server) -> None:
    first, second = tmp_path / "a" / "again", tmp_path / "b" / "again"
    group = Group("one", replace(CONFIG, epochs=3))
    study = start_study(first, [group], storage=server.url)
    assert not work(study, budget=Budget(epochs=2))
    assert work(open_study(second, storage=server.url))
    (record,) = study.records()
    assert (record.epochs, record.attempts) == (3, 2)
    assert losses(second / "one")[:2] == losses(first / "one")
    assert record.curve == Run.load(second / "one").metrics


@pytest.mark.slow
def test_ctrl_c_ends_a_worker_while_the_server_is_down(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_worker, "_REPORT_EVERY", 0.0)  # after every epoch
    study = start_study(tmp_path / "down", [Group("one", replace(CONFIG, epochs=9))], storage=server.url, heartbeat=1)

    def fall(message: object) -> None:
        if message == {"training": "one", "epoch": 2}:
            server.stop()
            Timer(0.5, signal.raise_signal, (signal.SIGINT,)).start()

    try:
        assert not work(study, send=fall)
    finally:
        server.start()
    assert len(losses(study.folder / "one")) == 3
    assert work(open_study(study.folder, storage=server.url, heartbeat=1))
    assert [record.status for record in study.records()] == ["finished"]
