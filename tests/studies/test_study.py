"""Studies: what is left to train, who waits for whom, and what is trained only once."""

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState, create_trial

from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.lock import exclusive_lock
from verydeep.search import open_search, read_search, start_search
from verydeep.studies import (
    Budget,
    Choices,
    Group,
    Halving,
    Range,
    Sampling,
    Stages,
    Study,
    open_study,
    run_study,
    start_study,
    work,
)
from verydeep.studies._claim import claim_training, release_training
from verydeep.studies._group import changed_settings, group_from_json, group_to_json
from verydeep.studies.storage._dead_workers import fail_attempt
from verydeep.studies.worker import _worker
from verydeep.training import DistillConfig, EpochMetrics, ModelConfig, OptimConfig, Run, TrainConfig, train

FIXTURE = Path(__file__).parents[1] / "fixtures" / "study-0.2.0"
CONFIG = TrainConfig(DataConfig("digits", validation=0.2), ModelConfig(depth=2, width=8), epochs=2, batch_size=200)
SPACE: Any = {"optim.lr": Range(0.01, 1.0, log=True), "model.depth": Choices((2, 3))}


def losses(path: Path) -> list[tuple[float | None, float | None]]:
    return [(line.loss, line.valid_loss) for line in Run.load(path).metrics]


def statuses(study: Study) -> dict[str, str]:
    return {record.name: record.status for record in study.records()}


def counted(study: Study) -> list[str]:
    """The trainings that are counted as complete, once for each time."""
    complete = study.optuna.get_trials(states=(TrialState.COMPLETE,))
    return sorted(trial.user_attrs["training"] for trial in complete)


@pytest.mark.parametrize(
    "group",
    [
        Group("", CONFIG, seeds=(0, 3)),
        Group("one", CONFIG, epochs=1, after="teacher"),
        Group("many", CONFIG, sampling=Sampling(SPACE, 7, 2, "tpe"), halving=Halving(2, 4)),
        Group("staged", CONFIG, sampling=Sampling(SPACE, 4), halving=Stages((1, 2), (4, 1))),
    ],
)
def test_a_group_is_stored_and_read_back(group: Group) -> None:
    assert group_from_json(group.name, group_to_json(group, 5), "here") == (5, group)


@pytest.mark.parametrize("change", [{"halving": 3}, {"halving": [1]}, {"epochs": "x"}, {"epochs": [1]}, {"seeds": 3}])
def test_a_damaged_group_is_named(change: dict[str, object]) -> None:
    stored = json.loads(group_to_json(Group("group", TrainConfig(DataConfig("digits")), (0,)), 5))
    with pytest.raises(UserError, match="here: damaged"):
        group_from_json("group", json.dumps(stored | change), "here")


def test_trainings_are_named_after_their_folders() -> None:
    assert Group("", CONFIG, seeds=(2, 5)).training_names == ["seed-2", "seed-5"]
    assert Group("a", CONFIG).training_names == ["a"]
    assert Group("a", CONFIG, sampling=Sampling(SPACE, 2)).training_names == ["a/0000", "a/0001"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "a", "seeds": ()}, "at least one seed"),
        ({"name": "a", "seeds": (1, 1)}, "each once"),
        ({"name": ""}, "needs a name"),
        ({"name": "a", "seeds": (1,), "sampling": Sampling(SPACE, 2)}, "not both"),
        *(({"name": name}, "relative path") for name in ("../a", "a/../../b", "/a", "a//b", "a/", ".", "C:a", "\0")),
    ],
)
def test_a_group_that_makes_no_sense_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        Group(config=CONFIG, **arguments)


def test_stages_must_ascend() -> None:
    for epochs, trainings in (((2, 1), (4, 2)), ((1, 2), (2, 4)), ((1,), (4, 2)), ((), ())):
        with pytest.raises(UserError, match="stages"):
            Stages(epochs, trainings)


def test_which_settings_make_another_study() -> None:
    group = Group("a", CONFIG, seeds=(0,))
    longer, elsewhere = replace(CONFIG, epochs=9), replace(CONFIG, device="cpu", threads=2)
    assert changed_settings(group, Group("a", longer, seeds=(0, 1))) == []
    assert changed_settings(group, Group("a", elsewhere, seeds=(0,))) == []
    assert changed_settings(group, Group("a", replace(CONFIG, batch_size=7), seeds=(0,))) == ["batch_size"]
    search = Group("a", CONFIG, sampling=Sampling(SPACE, 3))
    assert changed_settings(search, Group("a", longer, sampling=Sampling(SPACE, 3))) == ["epochs"]
    assert changed_settings(search, replace(search, halving=Halving(1, 2))) == [
        "search.halving.first",
        "search.halving.keep",
    ]


def test_seeds_single_trainings_and_searches_are_trained_as_runs_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    groups = [
        Group("", CONFIG, seeds=(0, 4)),
        Group("single", replace(CONFIG, seed=4)),
        Group("search", CONFIG, sampling=Sampling(SPACE, 2)),
    ]
    study = start_study(folder, groups)
    lines: list[str] = []
    assert work(study, report=lines.append)
    assert lines == [
        f"{name}: finished after 2 epochs" for name in ("seed-0", "seed-4", "single", "search/0000", "search/0001")
    ]
    alone = train(replace(CONFIG, seed=4, threads=1), tmp_path / "alone")
    assert losses(folder / "seed-4") == losses(folder / "single") == losses(alone.path)
    assert counted(study) == sorted(statuses(study))
    record = study.records()[1]
    assert record.curve == Run.load(folder / "seed-4").metrics
    assert record.environment["threads"] == 1
    assert work(open_study(folder), report=lines.append)
    assert len(lines) == 5


def test_a_paused_training_continues_to_the_same_bits(tmp_path: Path) -> None:
    folder, whole = tmp_path / "study", replace(CONFIG, epochs=3)
    study = start_study(folder, [Group("a", whole, epochs=1)])
    assert work(study)
    assert statuses(study) == {"a": "paused"}
    assert work(start_study(folder, [Group("a", whole, epochs=2)]))
    assert work(start_study(folder, [Group("a", whole)]))
    (record,) = study.records()
    assert (record.status, record.epochs, record.attempts) == ("finished", 3, 3)
    assert losses(folder / "a") == losses(train(replace(whole, threads=1), tmp_path / "alone").path)
    assert counted(study) == ["a"]


def test_finished_seeds_are_trained_for_more_epochs_and_new_ones_join(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    assert work(start_study(folder, [Group("", CONFIG, seeds=(0,))]))
    study = start_study(folder, [Group("", replace(CONFIG, epochs=3), seeds=(0, 1))])
    assert study.unfinished() == 2
    assert work(study)
    assert [record.epochs for record in study.records()] == [3, 3]
    assert losses(folder / "seed-0") == losses(train(replace(CONFIG, epochs=3, threads=1), tmp_path / "alone").path)


def test_only_the_best_of_a_stage_enter_the_next(tmp_path: Path) -> None:
    stages = Stages((1, 2, 3), (4, 2, 1))
    config = replace(CONFIG, epochs=3)
    study = start_study(tmp_path / "study", [Group("s", config, sampling=Sampling(SPACE, 4), halving=stages)])
    assert work(study)
    records = study.records()
    assert sorted(record.epochs for record in records) == [1, 1, 2, 3]
    assert sorted(record.status for record in records) == ["finished", "paused", "paused", "paused"]
    after_one = sorted(records, key=lambda record: (-(record.curve[0].valid_accuracy or 0), record.number))
    assert {record.name for record in after_one[:2]} == {record.name for record in records if record.epochs > 1}


def test_recorded_results_are_not_trained_again_and_count_in_the_stages(tmp_path: Path) -> None:
    stages = Stages((1, 2), (3, 1))
    group = Group("s", CONFIG, sampling=Sampling(SPACE, 3), halving=stages)
    study = start_study(tmp_path / "study", [group], metric="loss")
    study.add_result("s/0000", "paused", [EpochMetrics(1, loss=1e-9)])
    study.add_result("s/0001", "diverged", [EpochMetrics(1, loss=float("inf"))])
    assert work(study)
    records = {record.name: record for record in study.records()}
    assert [(record.status, record.epochs) for record in records.values()] == [
        ("finished", 2),  # its run was not here: it was trained from the beginning
        ("diverged", 1),
        ("paused", 1),
    ]
    assert not (tmp_path / "study" / "s" / "0001").exists()


def teacher_and_student() -> list[Group]:
    student = replace(CONFIG, distill=DistillConfig(weight=0.5))
    return [Group("student", student, seeds=(0,), after="teacher/seed-1"), Group("teacher", CONFIG, seeds=(1,))]


def test_a_student_waits_for_its_teacher(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", teacher_and_student())
    assert [task.state for task in study.tasks()] == ["blocked", "ready"]
    lines: list[str] = []
    assert work(study, report=lines.append, only=["student"])  # the teacher is trained with its student
    assert lines == ["teacher/seed-1: finished after 2 epochs", "student/seed-0: finished after 2 epochs"]
    teacher = Run.load(study.folder / "student" / "seed-0").config.distill.teacher
    assert teacher == str(study.folder / "teacher" / "seed-1")


def test_a_student_whose_teacher_never_finishes_is_not_waited_for(tmp_path: Path) -> None:
    student, teacher = teacher_and_student()
    study = start_study(tmp_path / "paused", [student, replace(teacher, epochs=1)])
    assert work(study)
    assert statuses(study) == {"student/seed-0": "waiting", "teacher/seed-1": "paused"}
    assert "teacher/seed-1" in study.records()[0].reason
    diverging = replace(CONFIG, divergence_factor=1.001, optim=OptimConfig(lr=1e9))
    study = start_study(tmp_path / "diverged", [student, Group("teacher", diverging, seeds=(1,))])
    assert work(study)
    assert statuses(study) == {"student/seed-0": "waiting", "teacher/seed-1": "diverged"}
    assert study.records()[0].reason == "needs teacher/seed-1, which diverged"
    study = start_study(tmp_path / "none", [student])
    assert work(study)
    assert "is not part of the study" in study.records()[0].reason


def test_the_first_trainings_of_all_groups_come_first_if_asked(tmp_path: Path) -> None:
    groups = [Group(name, CONFIG, seeds=(0, 1)) for name in ("a", "b")]
    lines: list[str] = []
    work(start_study(tmp_path / "deep", groups), report=lines.append, budget=Budget(epochs=4))
    work(start_study(tmp_path / "broad", groups, breadth_first=True), report=lines.append, budget=Budget(epochs=4))
    names = [line.partition(":")[0] for line in lines]
    assert names == ["a/seed-0", "a/seed-1", "a/seed-0", "b/seed-0"]


def test_trainings_begun_on_another_machine_are_left_to_it_for_a_while(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", [Group("", CONFIG, seeds=(0, 1))])
    with study.store.working("anna"):
        begun = claim_training(study, "anna")
        assert begun is not None
        study.store.storage.set_trial_intermediate_value(begun.trial_id, 1, 0.5)
        release_training(study, begun)
        claim = claim_training(study, "anna", is_here=lambda _: False, patient=True)
        assert claim is not None
        assert claim.name == "seed-1"
        assert claim_training(study, "anna", is_here=lambda _: False, patient=True) is None
        claim = claim_training(study, "anna", is_here=lambda _: False)
        assert claim is not None
        assert (claim.name, claim.reached) == ("seed-0", 1)


def test_progress_within_an_epoch_counts_as_progress_between_deaths(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", [Group("", CONFIG, seeds=(0,))])
    with study.store.working("anna"):
        for position in (0.0, 0.1, 0.2, 0.3, 0.3, 0.3):
            claim = claim_training(study, "anna")
            assert claim is not None
            assert claim.deaths <= 1 or position == 0.3
            study.store.storage.set_trial_user_attr(claim.trial_id, "from", position)
            fail_attempt(study.store.storage, claim.trial_id)
        claim = claim_training(study, "anna")
        assert claim is not None
        assert claim.deaths == 3


def test_a_training_that_failed_is_a_result_until_it_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = start_study(tmp_path / "study", [Group("", CONFIG, seeds=(0, 1))])
    monkeypatch.setattr(_worker, "MOST_DEATHS", 0)
    assert work(study)
    assert set(statuses(study).values()) == {"failed"}
    assert all("workers died" in record.reason for record in study.records())
    monkeypatch.undo()
    assert work(study)
    assert set(statuses(study).values()) == {"failed"}
    study.retry_failed()
    assert work(study)
    assert set(statuses(study).values()) == {"finished"}


def test_a_damaged_run_does_not_keep_the_others_from_training(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", [Group("", CONFIG, seeds=(0, 1))])
    (study.folder / "seed-0").mkdir()
    (study.folder / "seed-0" / "config.json").write_text("{}")
    with pytest.raises(UserError, match="seed-0"):
        work(study)
    assert statuses(study) == {"seed-0": "waiting", "seed-1": "finished"}
    assert "seed-0" in study.records()[0].reason
    shutil.rmtree(study.folder / "seed-0")
    assert work(study)


def test_other_settings_in_the_same_folder_are_refused(tmp_path: Path) -> None:
    start_study(tmp_path / "study", [Group("a", CONFIG, seeds=(0,))])
    other = Group("a", replace(CONFIG, batch_size=9), seeds=(0,))
    with pytest.raises(UserError, match=r"started with other settings \(batch_size changed\)"):
        start_study(tmp_path / "study", [other])
    start_study(tmp_path / "study", [replace(other, name="b")])
    with pytest.raises(UserError, match="metric changed"):
        start_study(tmp_path / "study", [other], metric="loss")
    with pytest.raises(UserError, match="is a study, but not that of a search"):
        open_search(tmp_path / "study")


def test_a_study_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(FIXTURE, folder)
    study = open_search(folder)
    assert [(record.status, record.epochs) for record in study.records()] == [("finished", 2), ("waiting", 1)]
    before = study.records()[0]
    assert (before.value, [line.epoch for line in before.curve]) == (0.2638888888888889, [1, 2])
    assert work(start_search(folder, read_search(folder / "tiny.toml")))
    assert [record.status for record in study.records()] == ["finished", "finished"]
    assert study.records()[0] == before


@pytest.mark.slow
def test_a_study_runs_in_processes_and_tells_of_every_epoch_once(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", [Group("", CONFIG, seeds=(0, 1, 2))])
    epochs: list[tuple[str, int]] = []
    ended: list[str] = []
    ending = run_study(
        study,
        jobs=2,
        on_epoch=lambda record, metrics: epochs.append((record.name, metrics.epoch)),
        on_end=lambda record: ended.append(record.name),
    )
    assert ending == "complete"
    assert sorted(epochs) == [(f"seed-{seed}", epoch) for seed in range(3) for epoch in (1, 2)]
    assert sorted(ended) == ["seed-0", "seed-1", "seed-2"]
    epochs.clear()
    assert run_study(study, on_epoch=lambda record, metrics: epochs.append((record.name, metrics.epoch))) == "complete"
    assert len(epochs) == 6
    with pytest.raises(UserError, match="0 or more"):
        run_study(study, jobs=-1)


@pytest.mark.slow
def test_what_no_worker_can_train_is_said_with_its_reason(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", [Group("", replace(CONFIG, device="cuda:77"), seeds=(0, 1))])
    with pytest.raises(UserError, match="a worker failed: device 'cuda:77' cannot be used"):
        run_study(study, jobs=1, root=tmp_path)
    assert run_study(study, jobs=1, allow_failures=True) == "a worker failed"
    assert "cuda:77" in study.records()[0].reason


def test_a_study_that_verydeep_did_not_make_is_left_alone(tmp_path: Path) -> None:
    study = start_study(tmp_path / "study", [Group("", CONFIG, seeds=(0,))])
    lines = (study.folder / "journal.log").read_text().splitlines()
    kept = [line for line in lines if "metric" not in json.loads(line).get("user_attr", {})]
    (study.folder / "journal.log").write_text("\n".join(kept) + "\n")
    with pytest.raises(UserError, match="was not created by verydeep"):
        open_study(study.folder)


def test_a_journal_that_cannot_be_used_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = start_study(tmp_path / "study", [Group("", CONFIG, seeds=(0, 1))])

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(UserError, match=r"journal\.log: the disk is full"):
            claim_training(study, "worker")
    shutil.rmtree(study.folder)
    with pytest.raises(UserError, match="was the folder moved or removed"):
        study.records()
    with pytest.raises(UserError, match="was the folder moved or removed"):
        claim_training(study, "worker")


@pytest.mark.parametrize(
    "attributes",
    [
        {"training": "seed-0", "result": "nonsense"},
        {"training": "seed-0", "result": "{}"},
        {"training": "seed-0", "result": ["finished"]},
        {"training": "seed-0", "result": '{"status": "finished", "epochs": null}'},
        {"training": "seed-0", "metrics:1": "nonsense"},
        {"training": "seed-0", "worker": "w", "environment": "3"},
    ],
)
def test_a_damaged_storage_is_reported_in_a_line(tmp_path: Path, attributes: dict[str, Any]) -> None:
    study = start_study(tmp_path, [Group("", CONFIG, seeds=(0,))])
    state = TrialState.COMPLETE if "result" in attributes else TrialState.FAIL
    value = 1.0 if state == TrialState.COMPLETE else None
    epochs = {} if "result" in attributes else {1: 0.5}
    study.optuna.add_trial(create_trial(state=state, value=value, user_attrs=attributes, intermediate_values=epochs))
    with pytest.raises(UserError, match="an attempt in the storage is damaged"):
        study.records()


def test_a_journal_whose_last_line_is_damaged_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "journal.log").write_bytes(b'{"op_code":0,"study\x01name":"study"}\n')
    with pytest.raises(UserError, match=r"journal\.log is damaged or is not a study's journal"):
        start_study(tmp_path / "study", [Group("", CONFIG, seeds=(0,))])


def test_the_lock_of_a_journal_that_cannot_be_read_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = start_study(tmp_path / "study", [Group("", CONFIG, seeds=(0, 1))])

    def fail(journal: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("verydeep.studies.storage._journal._drop_incomplete_line", fail)
        with pytest.raises(UserError, match=r"journal\.log: cannot be written \(Input/output error\)"):
            claim_training(study, "worker")
    with exclusive_lock(study.folder / "journal.lock", "the journal is still locked", wait=False):
        pass
    assert claim_training(study, "worker") is not None
