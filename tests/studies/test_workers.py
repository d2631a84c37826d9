"""What workers do when something goes wrong around them: teachers, storages, and other workers."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.studies import Group, Study, _claim, open_study, run_study, start_study, work
from verydeep.studies._artifacts import Artifacts
from verydeep.studies._claim import claim_training, finish_training
from verydeep.studies.storage import _postgres
from verydeep.studies.storage._dead_workers import fail_attempt
from verydeep.studies.worker import _pool
from verydeep.training import DistillConfig, ModelConfig, TrainConfig

CONFIG = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=4), epochs=1, batch_size=200)
STUDENT = Group("student", replace(CONFIG, distill=DistillConfig(weight=0.5)), after="teacher")
TEACHER = Group("teacher", CONFIG)


def without_server(monkeypatch: pytest.MonkeyPatch, study: Study, owner: type, method: str) -> None:
    """Let the storage be out of reach the first time that a method is called, and retry as with a server."""
    monkeypatch.setattr(_postgres, "_RETRY_AFTER", 0.0)
    monkeypatch.setattr(study.store, "with_retry", _postgres.with_retry)
    monkeypatch.setattr(owner, method, failing_once(getattr(owner, method)))


def failing_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call that finds the server down the first time."""
    left = iter([OperationalError("select", {}, Exception("the server is down"))])

    def fail(*arguments: Any, **options: Any) -> Any:
        for error in left:
            raise error
        return call(*arguments, **options)

    return fail


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting is an error."""

    def sleep(seconds: float) -> None:
        raise TimeoutError(seconds)

    monkeypatch.setattr(time, "sleep", sleep)


@pytest.mark.usefixtures("impatient")
def test_nobody_waits_for_the_student_of_a_teacher_that_no_worker_can_train(tmp_path: Path) -> None:
    late = replace(STUDENT, name="late", after="student")
    study = start_study(tmp_path, [late, STUDENT, replace(TEACHER, config=replace(CONFIG, device="cuda:77"))])
    with pytest.raises(UserError, match="cuda:77"):
        work(study)
    assert [record.status for record in study.records()] == ["waiting"] * 3


@pytest.mark.usefixtures("impatient")
def test_a_worker_waits_for_a_teacher_that_it_cannot_train_while_another_does(tmp_path: Path) -> None:
    study = start_study(tmp_path, [STUDENT, replace(TEACHER, config=replace(CONFIG, device="cuda:77"))])

    def lend(line: str) -> None:
        assert line.startswith("teacher: device")
        assert claim_training(study, "other") is not None

    with study.store.working("other"), pytest.raises(TimeoutError):
        work(study, report=lend)


def test_students_of_students_wait_for_all_their_teachers(tmp_path: Path) -> None:
    late = replace(STUDENT, name="late", after="student")
    study = start_study(tmp_path / "a", [late, STUDENT, TEACHER])
    assert [task.name for task in study.tasks(["late"])] == ["late", "student", "teacher"]
    study.add_result("teacher", "diverged", [])
    assert {task.name: task.reason for task in study.tasks()} == {
        "late": "needs student, which needs teacher, which diverged",
        "student": "needs teacher, which diverged",
        "teacher": "",
    }
    circle = start_study(tmp_path / "b", [replace(STUDENT, after="late"), late, replace(STUDENT, name="a", after="a")])
    assert circle.unfinished() == 0
    assert circle.tasks()[0].reason == "needs late, which needs student, which waits for itself"


def test_a_server_that_restarts_while_weights_are_shared_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = start_study(tmp_path / "study", [TEACHER], artifacts=tmp_path / "shared")
    without_server(monkeypatch, study, Artifacts, "upload")
    assert work(study)
    assert (study.records()[0].status, study.records()[0].attempts) == ("finished", 1)


def test_a_server_that_restarts_while_a_teacher_is_looked_up_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = start_study(tmp_path, [TEACHER, STUDENT])
    assert work(study, only=["teacher"])
    (tmp_path / "teacher").rename(tmp_path / "elsewhere")
    without_server(monkeypatch, study, Study, "records")
    assert work(study)
    assert [record.attempts for record in study.records()] == [1, 1]


def test_an_artifact_store_that_has_gone_is_no_fault_of_the_training(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    study = start_study(tmp_path / "study", [TEACHER], artifacts=shared)
    shared.rmdir()
    for _ in range(3):
        with pytest.raises(UserError, match=r"cannot store config\.json in the artifact store"):
            work(study)
    shared.mkdir()
    assert work(study)
    assert study.records()[0].status == "finished"


def test_a_worker_that_lost_its_training_while_it_shared_the_weights_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = start_study(tmp_path / "study", [TEACHER], artifacts=tmp_path / "shared")
    upload, lines = Artifacts.upload, list[str]()

    def lose(artifacts: Artifacts, storage: Any, trial: Any, run: Path) -> None:
        monkeypatch.setattr(Artifacts, "upload", upload)
        fail_attempt(storage, trial._trial_id)
        upload(artifacts, storage, trial, run)

    monkeypatch.setattr(Artifacts, "upload", lose)
    assert work(study, report=lines.append)
    assert lines == ["teacher: given to another worker", "teacher: finished after 1 epoch"]


def test_a_training_that_ended_while_another_worker_claimed_it_is_not_trained_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = start_study(tmp_path, [Group("", CONFIG, seeds=(0, 1))])
    monkeypatch.setattr(study.store, "claiming", nullcontext)  # as if the lock had timed out
    other = open_study(tmp_path)
    add_attempt = _claim._add_attempt

    def overtaken(*arguments: Any) -> Any:
        monkeypatch.setattr(_claim, "_add_attempt", add_attempt)
        claim = claim_training(other, "fast")
        assert claim is not None
        finish_training(other, claim, {"status": "finished", "epochs": 1}, [])
        return add_attempt(*arguments)

    monkeypatch.setattr(_claim, "_add_attempt", overtaken)
    with study.store.working("fast"), study.store.working("slow"):
        claim = claim_training(study, "slow")
    assert claim is not None
    assert claim.name == "seed-1"


def test_workers_that_die_before_they_train_are_not_replaced_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed:
        code = -9

        def received(self) -> list[dict[str, Any]]:
            return []

        def wait(self) -> None:
            started.append(1)

    started: list[int] = []
    monkeypatch.setattr(_pool, "WorkerProcess", lambda *_: SimpleNamespace(process=Killed()))
    monkeypatch.setattr(_pool, "_POLL_EVERY", 0.0)
    with pytest.raises(UserError, match=r"30 workers died before they trained \(SIGKILL\); out of memory\?"):
        run_study(start_study(tmp_path / "study", [TEACHER]), jobs=1)
    assert len(started) == 30
