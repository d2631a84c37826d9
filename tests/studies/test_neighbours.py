"""Workers that need the same run at the same time, train a teacher again, or start while the server is down."""

import shutil
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from _postgres import Server

from verydeep.data import DataConfig
from verydeep.lock import exclusive_lock, is_held
from verydeep.studies import Budget, DatasetCache, Group, Study, open_study, start_study, work
from verydeep.studies.worker import __main__ as program, _training
from verydeep.studies.worker._training import TrainingEvents, train_run
from verydeep.studies.worker._worker import TrainingCrashed
from verydeep.training import DistillConfig, ModelConfig, TrainConfig
from verydeep.training._trainer import Trainer

CONFIG = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=1, batch_size=500)
GROUPS = [
    Group("teacher", CONFIG),
    Group("student", replace(CONFIG, distill=DistillConfig(weight=0.5)), after="teacher"),
]


def test_a_run_that_another_worker_starts_a_moment_earlier_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "teacher", ExitStack()
    answers = [False]  # just before the other one takes the lock

    class ReleaseAfterWaiting(TrainingEvents):
        waited = 0

        def wait(self) -> None:
            self.waited += 1
            if self.waited == 3:
                other.close()

    events = ReleaseAfterWaiting()
    monkeypatch.setattr(_training, "is_held", lambda lock: answers.pop() if answers else is_held(lock))
    other.enter_context(exclusive_lock(path / "lock", "held by the test", wait=False))
    run = train_run(CONFIG, path, DatasetCache(None), events)
    assert run.summary is not None
    assert events.waited == 3


def test_a_run_that_another_worker_fetches_meanwhile_is_kept(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", GROUPS, artifacts=tmp_path / "shared")
    assert work(study)
    assert study.artifacts is not None
    teacher, run = study.attempts()["teacher"].ended, tmp_path / "elsewhere" / "teacher"
    assert teacher is not None
    for _ in range(2):
        study.artifacts.download(teacher, run)
    assert [path.name for path in run.parent.iterdir()] == ["teacher"]
    assert (run / "model.safetensors").read_bytes() == (study.folder / "teacher" / "model.safetensors").read_bytes()


def test_a_teacher_that_is_trained_again_is_progress_of_its_student(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = replace(CONFIG, epochs=6, checkpoint_every=0.0)  # a checkpoint after every epoch
    study = start_study(tmp_path / "study", [replace(GROUPS[0], config=longer), GROUPS[1]])
    assert work(study, only=["teacher"])
    shutil.rmtree(study.run_path("teacher"))  # as if it were on another machine
    fit, epochs = Trainer.train_epoch, []

    def die_in_every_second_epoch(trainer: Trainer, *arguments: Any) -> Any:
        epochs.append(trainer)
        if len(epochs) % 2 == 0:
            raise MemoryError
        return fit(trainer, *arguments)

    monkeypatch.setattr(Trainer, "train_epoch", die_in_every_second_epoch)
    for _ in range(7):
        with suppress(TrainingCrashed):
            assert work(study)
    assert [record.status for record in study.records()] == ["finished", "finished"]
    assert study.records()[1].attempts == 7


@pytest.mark.slow
def test_a_student_with_hints_continues_where_it_was_stopped(tmp_path: Path) -> None:
    data = DataConfig("digits", validation=0.9)  # few samples to train on
    teacher = replace(CONFIG, data=data, model=ModelConfig("highway-mnist-16"))
    hints = DistillConfig(hint_epochs=1, hint="highway2", guided="highway2")
    student = replace(teacher, epochs=2, distill=hints)
    study = start_study(tmp_path / "study", [Group("teacher", teacher), Group("student", student, after="teacher")])
    assert not work(study, budget=Budget(epochs=2))
    assert work(study)
    assert [(record.status, record.attempts) for record in study.records()] == [("finished", 1), ("finished", 2)]


def test_a_worker_that_starts_while_the_server_is_down_waits_for_it(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = start_study(tmp_path / "study", [Group("one", CONFIG)], storage=server.new_database())
    tried: list[str] = []

    def open_and_count(folder: str, **options: Any) -> Study:
        tried.append(folder)
        if len(tried) == 2:
            server.start()
        return open_study(folder, **options)

    options: dict[str, Any] = {
        "root": None,
        "only": None,
        "tensorboard": False,
        "seconds": None,
        "epochs": None,
        "artifacts": None,
    }
    options |= {"folder": str(study.folder), "store": study.store.options}
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # restored afterwards
    monkeypatch.setattr(program, "first_message", lambda: options)
    monkeypatch.setattr(program, "stop_when_input_closes", lambda: None)
    monkeypatch.setattr(program, "open_study", open_and_count)
    server.stop()
    try:
        assert program.main() == 0
    finally:
        if len(tried) < 2:
            server.start()
    assert [record.status for record in study.records()] == ["finished"]
