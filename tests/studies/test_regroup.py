"""Studies that get other groups than before, and single trainings of them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import pytest
from _postgres import Server

from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.studies import Group, open_study, start_study
from verydeep.training import EpochMetrics, ModelConfig, TrainConfig

CONFIG = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=2)
DONE = [EpochMetrics(1, loss=2.0, seconds=1.0), EpochMetrics(2, loss=1.0, seconds=2.0)]


def test_single_trainings_are_chosen_by_name_together_with_their_teacher(tmp_path: Path) -> None:
    teacher = Group("teacher", CONFIG, seeds=(0, 1))
    student = Group("student", CONFIG, seeds=(0, 1), after="teacher/seed-0")
    study = start_study(tmp_path, [teacher, student])
    assert [task.name for task in study.tasks(["teacher/seed-1"])] == ["teacher/seed-1"]
    assert [record.name for record in study.records(["student/seed-1"])] == ["teacher/seed-0", "student/seed-1"]
    assert study.unfinished(["teacher", "student/seed-1"]) == 3


def test_a_group_of_other_settings_starts_again_only_on_request(tmp_path: Path) -> None:
    before, other = Group("a", CONFIG, seeds=(0, 1)), Group("b", CONFIG, seeds=(0,))
    study = start_study(tmp_path, [before, other])
    for name in ("a/seed-0", "a/seed-1", "b/seed-0"):
        study.add_result(name, "finished", DONE)
    assert study.unfinished() == 0
    now = replace(before, config=replace(CONFIG, batch_size=50), seeds=(0, 2))
    with pytest.raises(UserError, match="batch_size changed"):
        start_study(tmp_path, [now])
    assert start_study(tmp_path, [before], restart_changed=True).unfinished() == 0
    start_study(tmp_path, [now], restart_changed=True)
    study = open_study(tmp_path)
    assert {record.name: record.status for record in study.records()} == {
        "a/seed-0": "waiting",
        "a/seed-2": "waiting",
        "b/seed-0": "finished",
    }
    study.add_result("a/seed-0", "finished", DONE)
    assert study.unfinished() == 1


def test_a_folder_of_runs_from_before_studies_becomes_a_study(tmp_path: Path) -> None:
    run = tmp_path / "highway" / "seed-0"
    run.mkdir(parents=True)
    (tmp_path / "highway.lock").touch()
    groups = [Group("plain", CONFIG, seeds=(0,))]
    with pytest.raises(UserError, match="is not a study \\(it contains highway\\)"):
        start_study(tmp_path, groups)
    (run / "config.json").write_text("{}")
    assert start_study(tmp_path, groups).unfinished() == 1


def test_seeds_are_replaced_or_added(tmp_path: Path) -> None:
    def seeds(given: tuple[int, ...], *, add: bool) -> tuple[int, ...] | None:
        return start_study(tmp_path, [Group("a", CONFIG, seeds=given)], add_seeds=add).groups[0].seeds

    assert seeds((0, 4), add=True) == (0, 4)
    assert seeds((2,), add=True) == (0, 2, 4)
    assert seeds((1,), add=False) == (1,)


def test_two_commands_at_the_same_time_do_not_undo_each_others_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = start_study(tmp_path, [Group("", CONFIG, seeds=(0, 1, 2, 3))])
    for seed in (0, 1):
        study.add_result(f"seed-{seed}", "finished", DONE)
    for seed in (2, 3):
        study.add_result(f"seed-{seed}", "failed", [])
    other, write = open_study(tmp_path), study.optuna.set_user_attr

    def meanwhile(action: Callable[[], None]) -> None:
        def overtaken(key: str, value: object) -> None:
            action()
            write(key, value)

        monkeypatch.setattr(study.optuna, "set_user_attr", overtaken)

    meanwhile(lambda: other.forget(["seed-1"]))
    study.forget(["seed-0"])
    meanwhile(lambda: other.retry_failed(["seed-3"]))
    study.retry_failed(["seed-2"])
    assert {record.status for record in study.records()} == {"waiting"}


@pytest.mark.slow
def test_commands_that_add_seeds_to_a_study_on_a_server_wait_for_each_other(tmp_path: Path, server: Server) -> None:
    def seeds(*given: int) -> list[Group]:
        return [Group("a", CONFIG, seeds=given)]

    folder, url = tmp_path / "shared-seeds", server.url
    study = start_study(folder, seeds(0), storage=url, add_seeds=True)
    with ThreadPoolExecutor(1) as pool:
        with study.store.claiming():
            other = pool.submit(start_study, folder, seeds(5), storage=url, add_seeds=True)
            assert wait([other], timeout=1.0).not_done
            study.set_group(replace(study.groups[0], seeds=(0, 7)))
        other.result()
    assert study.groups[0].seeds == (0, 5, 7)
