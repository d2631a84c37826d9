"""What people see while a study runs: a table that fits the terminal, lines in a log, and how long it will take."""

import re
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from sqlalchemy.exc import SQLAlchemyError

from verydeep.data import DataConfig
from verydeep.studies import (
    Budget,
    Choices,
    Group,
    Halving,
    Sampling,
    Space,
    Stages,
    Study,
    StudyProgress,
    TrainingRecord,
    _run_study,
    choose_study_progress,
    make_study_progress,
    run_study,
    start_study,
)
from verydeep.studies._overview import Overview
from verydeep.studies._overview_table import overview_table
from verydeep.studies._progress import StudyLines, StudyNotebook, StudyTable
from verydeep.studies._words import format_left, format_settings
from verydeep.studies.worker._pool import WorkerPool
from verydeep.training import DistillConfig, EpochMetrics, Interrupt, ModelConfig, TrainConfig, render_text

CONFIG = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=20)
SEEDS = Group("", CONFIG, seeds=(0, 1, 2))
SPACE: Space = {"optim.lr": Choices((0.1, 0.2)), "model.depth": Choices((5, 10))}
SEARCH = Group("trials", CONFIG, sampling=Sampling(SPACE, trials=6))


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def study_of(folder: Path, *groups: Group, metric: str = "valid_accuracy") -> Study:
    return start_study(folder / "demo", groups, metric=metric)


def curve(epochs: int, *, valid: float | None = None, speed: float = 3.0) -> list[EpochMetrics]:
    validation: dict[str, Any] = {} if valid is None else {"valid_loss": 1.0, "valid_accuracy": valid}
    return [
        EpochMetrics(epoch, lr=0.1, loss=0.5, accuracy=0.75, seconds=speed * epoch, **validation)
        for epoch in range(1, epochs + 1)
    ]


def record(
    name: str, status: str, epochs: int = 0, *, valid: float | None = None, speed: float = 3.0, **values: Any
) -> TrainingRecord:
    """A training that takes `speed` seconds per epoch."""
    lines = curve(epochs, valid=valid, speed=speed)
    group, _, number = name.rpartition("/")
    given: dict[str, Any] = {"name": name, "group": group, "goal": 20, "curve": lines} | values
    return TrainingRecord(int(re.sub(r"\D", "", number) or 0), status, valid, epochs, speed * epochs, **given)


def text_of(overview: Overview, width: int = 120, height: int = 30, **options: bool) -> list[str]:
    return render_text(overview_table(overview, width, height, **options), width).splitlines()


def test_a_table_shows_every_training(tmp_path: Path, clock: Clock) -> None:
    records = [
        record("seed-0", "finished", 20, valid=0.95),
        record("seed-1", "training", 5, valid=0.9),
        record("seed-2", "waiting"),
    ]
    overview = Overview(study_of(tmp_path, SEEDS), 2, records, now=clock)
    assert text_of(overview) == [
        "demo: 1 of 3 done, 1 in training, best: seed-0 validation accuracy 95.00%, about 1 min left",
        "                                                               best",
        "                                               training  validation",
        "training  status                epoch    loss  accuracy    accuracy  time  left",
        "seed-0    finished  ━━━━━━━━━━  20/20  0.5000    75.00%      95.00%  1:00",
        "seed-1    training  ━━────────   6/20  0.5000    75.00%      90.00%  0:15  50 s",
        "seed-2    waiting   ──────────   0/20",
    ]


def test_losses_of_different_kinds_are_not_compared(tmp_path: Path, clock: Clock) -> None:
    """Students are trained with other losses than their teachers, and hints with another one than labels."""
    hints = DistillConfig("teacher", hint_epochs=1, hint="layers.0", guided="layers.0")
    groups = [Group("teacher", CONFIG), Group("student", replace(CONFIG, distill=hints), after="teacher")]
    records = [record(group.name, "finished", 20, group=group.name) for group in groups]
    records = [replace(each, value=0.1) for each in records]
    study = study_of(tmp_path, *groups, metric="loss")
    assert Overview(study, 1, records, now=clock).describe() == "demo: 2 of 2 done"
    twice = [replace(records[1], name=f"student/{number}") for number in range(2)]
    assert Overview(study, 1, twice, now=clock).describe() == "demo: 2 of 2 done"
    twice = [replace(records[0], name=f"teacher/{number}") for number in range(2)]
    assert Overview(study, 1, twice, now=clock).describe() == "demo: 2 of 2 done, best: teacher/0 loss 0.1"


def test_a_training_on_this_machine_moves_within_its_epoch(tmp_path: Path, clock: Clock) -> None:
    plain, highway = (Group(name, replace(CONFIG, epochs=4)) for name in ("plain", "highway"))
    waiting = [record(name, "waiting", group=name, goal=4) for name in ("plain", "highway")]
    overview = Overview(study_of(tmp_path, plain, highway, metric="loss"), 2, waiting, now=clock)
    overview.step("highway", 0.25, loss=2.0, accuracy=0.1)  # before the records say that it is in training
    clock.seconds += 3
    overview.step("highway", 0.75, loss=1.0, accuracy=0.2)
    [title, _, header, _, row] = text_of(overview)
    assert title == "demo: 0 of 2 done, 1 in training, about 30 s left"  # plain is taken to be as fast
    assert header.split() == ["training", "status", "epoch", "loss", "accuracy", "time", "left"]
    assert row.split() == ["highway", "training", "━─────────", "1/4", "1.7000", "13.00%", "0:03", "20", "s"]
    overview.update([waiting[0], record("highway", "training", 1, speed=6.0, group="highway", goal=4)])
    clock.seconds += 2
    overview.step("highway", 1.5, loss=0.0, accuracy=0.5)
    row = text_of(overview)[-1]
    assert row.split()[2:7] == ["━━━───────", "2/4", "1.1900", "75.00%", "0:08"]  # the accuracy of the whole epoch
    overview.update([waiting[0], record("highway", "waiting", 1, speed=6.0, group="highway", goal=4)])
    assert text_of(overview)[-1].split()[:4] == ["highway", "waiting", "━━────────", "1/4"]


def test_a_training_that_starts_again_shows_where_it_is_now(tmp_path: Path, clock: Clock) -> None:
    records = [record("seed-0", "training", 10), record("seed-1", "training", 10)]
    overview = Overview(study_of(tmp_path, SEEDS), 2, records, now=clock)
    overview.step("seed-0", 4.5, 1.0, 0.5)  # its checkpoint was on another machine
    overview.step("seed-1", 9.9, 1.0, 0.5)  # the last report of an epoch that has been recorded
    assert [overview.position(each) for each in records] == [4.5, 10]


@pytest.mark.parametrize("width", [30, 45, 60, 80, 100, 140])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, clock: Clock, width: int) -> None:
    settings = {"optim.lr": 0.0123456, "model.depth": 10, "model.activation": "tanh"}
    reason = "the network does not fit into memory, which has only 8 GB"
    records = [
        record("trials/0000", "training", 3, valid=0.5, settings=settings, worker="alpha-1-abcdef"),
        record("trials/0001", "stopped early", 12, valid=0.75, settings=settings, worker="beta-1-abcdef"),
        record("trials/0002", "failed", settings=settings, reason=reason),
    ]
    lines = text_of(Overview(study_of(tmp_path, SEARCH), 1, records, now=clock), width)
    assert max(map(len, lines)) <= width
    assert [line.split()[0][-5:] + " " + line.split()[1] for line in lines[-3:]] == [
        "/0000 training",
        "/0001 stopped",
        "/0002 failed",
    ]
    if width >= 60:
        assert len(lines) == 7
        assert "the network" in lines[6]
        assert [line.split()[0] for line in lines[4:]] == [each.name for each in records]
        assert all(part in lines[4] for part in ("4/20", "50.00%", "lr=0.0123"))
    if width >= 140:
        assert "lr=0.0123 depth=10 activation=tanh" in lines[4]


def test_a_narrow_table_keeps_what_matters(tmp_path: Path, clock: Clock) -> None:
    records = [record("seed-0", "training", 3, valid=0.5), record("seed-1", "training", 3, valid=0.6)]
    overview = Overview(study_of(tmp_path, SEEDS), 2, records, now=clock)
    headers = {width: " ".join(text_of(overview, width)[3].split()) for width in (80, 70, 55)}
    assert headers == {
        80: "training status epoch loss accuracy accuracy time left",
        70: "training status epoch loss accuracy accuracy left",
        55: "training status epoch loss accuracy accuracy",
    }
    assert text_of(overview, 60)[0] == "demo: 0 of 2 done, 2 in training, about 1 min left"
    assert text_of(overview, 75)[0] == "demo: 0 of 2 done, 2 in training, best: seed-1 60.00%, about 1 min left"


def test_of_many_trainings_those_in_training_and_the_best_are_shown(tmp_path: Path, clock: Clock) -> None:
    ended = [record(f"trials/{number:04}", "finished", 2, valid=number / 1000) for number in range(130)]
    failed = [record(f"trials/{number:04}", "failed", reason="too large") for number in range(130, 133)]
    training = [record(f"trials/{number:04}", "training", 1, valid=0.05) for number in range(133, 136)]
    waiting = [record(f"trials/{number:04}", "waiting") for number in range(136, 800)]
    overview = Overview(study_of(tmp_path, SEARCH), 3, [*waiting, *training, *failed, *ended], now=clock)
    lines = text_of(overview, height=14)
    assert lines[0].startswith("demo: 133 of 800 done (3 failed), 3 in training, best: trials/0129 ")
    names = [line.split()[0] for line in lines[4:-1]]
    assert names == ["trials/0133", "trials/0134", "trials/0135", *(f"trials/{129 - n:04}" for n in range(5))]
    assert lines[-1] == "and 792 more: 664 waiting, 125 done, 3 failed"
    assert len(lines) == 13  # and a line for the cursor
    numbers = [line.split()[0][-4:] for line in text_of(overview, height=143)[4:-1]]
    assert numbers[-5:] == ["0000", "0130", "0131", "0132", "0136"]  # after the worst, failures and who waits
    assert len(text_of(overview, height=3)) == 6  # too low for anything, but one row is shown


def test_all_trainings_are_shown_in_their_order_if_they_fit(tmp_path: Path, clock: Clock) -> None:
    records = [record(f"seed-{seed}", "finished", 2, valid=seed / 10) for seed in range(5)]
    overview = Overview(study_of(tmp_path, SEEDS), 1, records, now=clock)
    assert [line.split()[0] for line in text_of(overview, height=10)[4:]] == [each.name for each in records]
    assert [line.split()[0] for line in text_of(overview, height=9)[4:]] == ["seed-4", "seed-3", "seed-2", "and"]


def test_settings_are_short() -> None:
    assert format_settings({"optim.lr": 0.0123456, "model.depth": 7}) == "lr=0.0123 depth=7"
    assert format_settings({"optim.name": "sgd", "model.name": "x"}) == "optim.name=sgd model.name=x"


def test_reasons_are_shown_and_in_the_last_table_in_full(tmp_path: Path, clock: Clock) -> None:
    reason = "three workers [died] while they trained it, the last one for lack of memory"
    student = Group("student", CONFIG, after="teacher")
    records = [
        record("teacher", "training", 1, group="teacher"),
        record("student", "waiting", group="student", reason="waits for teacher"),
        record("wrong", "failed", group="teacher", reason=reason),
    ]
    overview = Overview(study_of(tmp_path, Group("teacher", CONFIG), student), 1, records, now=clock)
    lines = text_of(overview, 80)
    assert lines[3].split()[-1] == "reason"
    assert lines[5].endswith("  waits for teacher")
    assert "three workers [died]" in lines[6]
    assert lines[6].endswith("…")
    last = text_of(overview, 80, last=True)
    start = last[6].index("three")
    assert " ".join(line[start:] for line in last[6:]).replace("  ", " ") == reason


def test_hosts_are_shown_if_there_are_several(tmp_path: Path, clock: Clock) -> None:
    one = [record(f"seed-{seed}", "training", 1, worker="node-1-123-abcdef") for seed in range(2)]
    overview = Overview(study_of(tmp_path, SEEDS), 0, one, now=clock)
    assert "node-1" not in "\n".join(text_of(overview))
    overview.update([one[0], replace(one[1], worker="node-2-77-123456")])
    lines = text_of(overview)
    assert lines[-3].split()[:4] == ["training", "status", "host", "epoch"]
    assert [line.split()[2] for line in lines[-2:]] == ["node-1", "node-2"]


def test_trainings_on_different_data_have_no_best(tmp_path: Path, clock: Clock) -> None:
    other = Group("b", replace(CONFIG, data=DataConfig("mnist")))
    records = [record(name, "finished", 20, valid=0.9, group=name) for name in ("a", "b")]
    study = study_of(tmp_path, Group("a", CONFIG), other)
    assert Overview(study, 2, records, now=clock).describe() == "demo: 2 of 2 done"
    assert Overview(study, 2, records[:1] * 2, now=clock).describe().endswith("best: a validation accuracy 90.00%")


def test_a_terminal_without_unicode_gets_none(tmp_path: Path, clock: Clock) -> None:
    records = [record("trials/0000", "training", 5, valid=0.5, settings={"model.activation": "tanh" * 30})]
    lines = text_of(Overview(study_of(tmp_path, SEARCH), 1, records, now=clock), 140, ascii_only=True)
    assert "\n".join(lines).isascii()
    assert "##--------" in lines[-1]


# The time left.


def seconds_left(study: Study, jobs: int, *records: TrainingRecord) -> float | None:
    return Overview(study, jobs, list(records), now=Clock()).time_left().study


def test_time_left_is_shared_by_the_workers(tmp_path: Path) -> None:
    study = study_of(tmp_path, SEEDS)
    training, waiting = record("seed-0", "training", 10), [record(f"seed-{n}", "waiting") for n in (1, 2)]
    assert seconds_left(study, 1, training, *waiting) == 30 + 2 * 60
    assert seconds_left(study, 2, training, *waiting) == (30 + 2 * 60) / 2
    assert seconds_left(study, 8, training, *waiting) == 60  # at least the longest
    elsewhere = [replace(training, name=f"seed-{n}") for n in (1, 2)]
    assert seconds_left(study, 0, training, *elsewhere) == 30
    assert seconds_left(study, 0, replace(training, status="waiting"), *waiting) is None  # nobody is there
    assert seconds_left(study, 2, *waiting) is None  # nothing was measured
    assert seconds_left(study, 2, record("seed-0", "finished", 20)) is None  # nothing is left


def test_a_new_group_is_taken_to_be_as_fast_as_the_others(tmp_path: Path) -> None:
    groups = [Group(name, CONFIG, seeds=(0,)) for name in ("a", "b", "c")]
    known = [record("a/seed-0", "finished", 20, speed=1.0), record("b/seed-0", "finished", 20, speed=5.0)]
    assert seconds_left(study_of(tmp_path, *groups), 1, *known, record("c/seed-0", "waiting")) == 20 * 3.0


def test_trainings_that_wait_are_expected_to_get_as_far_as_others(tmp_path: Path) -> None:
    study = study_of(tmp_path, replace(SEARCH, halving=Halving()))
    ended = [record("trials/0000", "pruned", 2), record("trials/0001", "finished", 20)]
    broken = record("trials/0002", "failed", reason="too large")
    assert seconds_left(study, 1, *ended, broken, record("trials/0003", "waiting")) == pytest.approx(11 * 3)
    assert seconds_left(study, 1, *ended, record("trials/0003", "training", 2)) == 18 * 3


def test_later_stages_count(tmp_path: Path) -> None:
    study = study_of(tmp_path, replace(SEARCH, halving=Stages(epochs=(2, 10, 20), trainings=(6, 2, 1))))
    first = [record(f"trials/{n:04}", "paused" if n < 4 else "waiting", 2 if n < 4 else 0, goal=2) for n in range(6)]
    assert seconds_left(study, 1, *first) == 3 * (2 * 2 + 2 * 8 + 1 * 10)
    second = [replace(each, goal=10, status="waiting", epochs=2) for each in first[:2]]
    assert seconds_left(study, 1, *second, *first[2:4]) == 3 * (2 * 8 + 1 * 10)


def test_students_wait_for_their_teacher(tmp_path: Path) -> None:
    groups = [Group("teacher", CONFIG), Group("student", CONFIG, seeds=(0, 1), after="teacher")]
    teacher = record("teacher", "training", 10, group="teacher")
    students = [record(f"student/seed-{n}", "waiting", reason="waits for teacher") for n in range(2)]
    assert seconds_left(study_of(tmp_path, *groups), 8, teacher, *students) == 30 + 60


def test_epochs_that_train_hints_do_not_count_as_a_measure(tmp_path: Path) -> None:
    distill = DistillConfig("runs/teacher", hint_epochs=10, hint="block1", guided="block1")
    study = study_of(tmp_path, Group("student", replace(CONFIG, distill=distill), seeds=(0,)))
    hints, epochs = curve(10, speed=1.0), [EpochMetrics(n, seconds=10 + 4.0 * (n - 10)) for n in range(11, 16)]
    training = record("student/seed-0", "training", 15)
    assert seconds_left(study, 1, replace(training, seconds=30.0, curve=hints + epochs)) == 5 * 4


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.5, "10 s"),
        (31, "40 s"),
        (51, "1 min"),
        (61, "2 min"),
        (600, "10 min"),
        (601, "15 min"),
        (3300, "55 min"),
        (3301, "1 h"),
        (4000, "1.5 h"),
        (36000, "10 h"),
        (36001, "11 h"),
        (48 * 3600, "48 h"),
        (49 * 3600, "3 days"),
    ],
)
def test_estimates_are_coarse(seconds: float, text: str) -> None:
    assert format_left(seconds) == text


def test_the_budget_that_is_left_is_shown(tmp_path: Path, clock: Clock) -> None:
    study, records = study_of(tmp_path, SEEDS), [record("seed-0", "training", 5), record("seed-1", "finished", 10)]
    overview = Overview(study, 1, records, Budget(seconds=3600), clock)
    clock.seconds += 3000
    assert overview.describe_left() == ", about 50 s left, 10 min of the budget"
    overview = Overview(study, 1, records, Budget(epochs=16), clock)
    assert overview.describe().endswith(", about 50 s left, 1 epoch of the budget")
    assert Overview(study, 1, records[1:], Budget(epochs=16), clock).describe_left() == ""


# Lines for logs.


def test_a_small_study_prints_a_line_per_epoch(
    tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, waiting = StudyLines(clock), [record("seed-10", "waiting"), record("seed-1", "training", 1, valid=0.5)]
    lines.start(study_of(tmp_path, SEEDS), 2, waiting)
    lines.update([waiting[0], record("seed-1", "training", 3, valid=0.5)])
    lines.update([waiting[0], record("seed-1", "training", 3, valid=0.5)])
    lines.update([waiting[0], record("seed-1", "diverged", 4)])
    lines.update([replace(waiting[0], status="failed", reason="no [memory]"), record("seed-1", "diverged", 4)])
    lines.close()
    assert capsys.readouterr().out.splitlines() == [
        "demo: 0 of 2 done, 1 in training, best: seed-1 validation accuracy 50.00%, about 1 min left",
        "seed-1   epoch  2/20  loss 0.5 75.00%  valid 1 50.00%  lr 0.1  0:06; 0/2 done, about 1 min left",
        "seed-1   epoch  3/20  loss 0.5 75.00%  valid 1 50.00%  lr 0.1  0:09; 0/2 done, about 1 min left",
        "seed-1   epoch  4/20  loss 0.5 75.00%  lr 0.1  0:12; 1/2 done, about 20 s left",
        "seed-1   diverged after 4 epochs  time 0:12; 1/2 done, about 20 s left",
        "seed-10  failed: no [memory]; 2/2 done",
    ]


def test_a_search_prints_a_line_per_training_that_ends(
    tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, first = {"optim.lr": 0.1, "model.depth": 5}, record("trials/0000", "finished", 20, valid=0.9)
    lines = StudyLines(clock)
    lines.start(study_of(tmp_path, SEARCH), 1, [first, record("trials/0001", "training")])
    lines.update([first, record("trials/0001", "training", 3, valid=0.5)])
    lines.update([first, record("trials/0001", "pruned", 4, valid=0.5, settings=settings)])
    hosts = [replace(first, worker="a-1-abcdef"), record("trials/0001", "paused", 9, valid=0.5, worker="b-1-abcdef")]
    lines.update(hosts)
    lines.update(hosts)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "trials/0001  pruned after 4 epochs  best validation accuracy 50.00%  time 0:12  lr=0.1 depth=5; 2/2 done",
        "trials/0001  paused after 9 epochs  best validation accuracy 50.00%  time 0:27  on b; 2/2 done",
    ]


def test_a_large_study_prints_ends_only_and_breaks_a_long_silence(
    tmp_path: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, waiting = StudyLines(clock), [record(f"seed-{n}", "waiting") for n in range(1, 25)]
    training = record("seed-0", "training", 1)
    lines.start(study_of(tmp_path, SEEDS), 1, [record("seed-0", "training"), *waiting])
    capsys.readouterr()
    for minutes in (5, 4.9):
        clock.seconds += minutes * 60
        lines.update([training, *waiting])
        assert capsys.readouterr().out == ""
    clock.seconds += 6
    lines.update([training, *waiting])
    lines.update([training, *waiting])
    assert capsys.readouterr().out == "demo: 0 of 25 done, 1 in training, about 25 min left\n"


# What is chosen, and when it is drawn.


def test_the_table_is_drawn_twice_a_second_at_most(tmp_path: Path, clock: Clock) -> None:
    console = Console(file=StringIO(), width=100, height=20, force_terminal=True, color_system=None)
    assert isinstance(console.file, StringIO)
    table, training = StudyTable(console, clock), record("seed-0", "training", 1, valid=0.5)
    table.start(study_of(tmp_path, SEEDS), 1, [training])
    for number in range(1, 40):
        clock.seconds += 0.05
        table.step("seed-0", 1 + number / 40, loss=1.0, accuracy=0.5)
        table.update([training])
    table.update([replace(training, status="waiting")])  # as after Ctrl-C
    table.close()
    text = console.file.getvalue()
    assert text.count("demo: 0 of 1 done, 1 in training") == 1 + 3
    assert text.rpartition("demo:")[2].startswith(" 0 of 1 done, 0 in training")
    assert text.endswith("\n\x1b[?25h")  # the cursor is back, below the table


def test_the_table_says_that_the_study_stops(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that the signal handler prints would be overwritten, and leave a part of the table behind."""
    printed: list[bytes] = []
    console = Console(file=StringIO(), width=100, height=20, force_terminal=True, color_system=None)
    assert isinstance(console.file, StringIO)

    def train(pool: WorkerPool, interrupt: Interrupt, poll: Callable[[list[dict[str, Any]]], None]) -> None:
        signal.raise_signal(signal.SIGINT)
        poll([])

    monkeypatch.setattr(WorkerPool, "run_until_done", train)
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("os.write", lambda file, text: printed.append(text))
    study = study_of(tmp_path, SEEDS)
    assert run_study(study, jobs=1, progress=StudyTable(console, clock)) == "interrupted"
    titles = re.findall("demo: .*", console.file.getvalue())
    assert titles[1].strip() == "demo: 0 of 3 done, 0 in training; stopping, press Ctrl-C again to quit at once"
    assert titles[-1].strip() == "demo: 0 of 3 done, 0 in training"
    assert not printed
    assert run_study(study, jobs=1, progress=StudyProgress()) == "interrupted"
    assert len(printed) == 1


def test_a_server_that_does_not_answer_is_named(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The records are those before it went down, so the table would be out of date without a word."""
    console = Console(file=StringIO(), width=100, height=20, force_terminal=True, color_system=None)
    assert isinstance(console.file, StringIO)

    def train(pool: WorkerPool, interrupt: Interrupt, poll: Callable[[list[dict[str, Any]]], None]) -> None:
        records, answers = pool.study.records, iter([False, True])

        def answer(only: None = None) -> list[TrainingRecord]:
            if not next(answers, True):
                raise SQLAlchemyError
            return records(only)

        monkeypatch.setattr(pool.study, "records", answer)
        poll([{"training": "seed-0", "epoch": 1}])
        clock.seconds += 1
        poll([{"training": "seed-0", "epoch": 1}])
        interrupt.requested = True

    monkeypatch.setattr(WorkerPool, "run_until_done", train)
    monkeypatch.setattr(_run_study, "_PAUSE", 0)
    for number, progress in enumerate((StudyTable(console, clock), StudyLines(clock))):
        study = study_of(tmp_path / str(number), SEEDS)
        assert run_study(study, jobs=1, progress=progress) == "interrupted"
    titles = [title.strip() for title in re.findall("demo: .*", console.file.getvalue())]
    assert titles[1] == "demo: 0 of 3 done, 0 in training; the server does not answer, trying again"
    assert set(titles[2:]) == {titles[0]} == {"demo: 0 of 3 done, 0 in training"}
    assert "demo: the server does not answer; trying again\n" in capsys.readouterr().out


def test_a_study_shows_its_table_in_a_notebook(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    handle = SimpleNamespace(update=lambda content, raw: shown.append(content["text/plain"]))

    def show(content: dict[str, str], *, raw: bool, display_id: bool) -> SimpleNamespace:
        shown.append(content["text/plain"])
        return handle

    display.display = show  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    progress = choose_study_progress(True)
    assert isinstance(progress, StudyNotebook)
    progress.now = clock
    progress.start(study_of(tmp_path, SEEDS), 1, [record("seed-0", "waiting")])
    clock.seconds += 1
    progress.update([record("seed-0", "waiting")])  # nothing new
    progress.update([record("seed-0", "finished", 20, valid=0.5)])
    progress.close()
    assert [text.splitlines()[0] for text in shown] == ["demo: 0 of 1 done, 0 in training", "demo: 1 of 1 done"]
    assert shown[-1].endswith(f"seed-0    finished  {'━' * 10}  20/20  0.5000    75.00%      50.00%  1:00")
    assert capsys.readouterr() == ("", "")


def test_the_display_suits_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    own = StudyProgress()
    assert choose_study_progress(own) is own
    kinds = [type(choose_study_progress(given)) for given in (True, False, None)]
    assert kinds == [StudyProgress] * 3
    assert type(make_study_progress(False)) is StudyLines
    monkeypatch.setattr("verydeep.studies._progress.is_terminal", lambda: True)
    assert type(choose_study_progress(True)) is type(make_study_progress(False)) is StudyTable
    assert type(make_study_progress(True)) is StudyProgress


def test_a_display_is_told_everything_before_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    class Log(StudyProgress):
        def start(self, study: Study, jobs: int, records: list[TrainingRecord]) -> None:
            told.append(f"{study.name} with {jobs} for {self.budget.seconds} s: {records[0].status}")

        def step(self, training: str, done: float, loss: float, accuracy: float) -> None:
            told.append(f"{training} at {done} with {loss} and {accuracy}")

        def update(self, records: list[TrainingRecord]) -> None:
            told.append(records[0].status)

        def close(self) -> None:
            told.append("closed")

    def train(pool: WorkerPool, interrupt: Interrupt, poll: Callable[[list[dict[str, Any]]], None]) -> None:
        poll([{"training": "seed-3", "done": 0.5, "loss": 2.0, "accuracy": 0.25}])
        pool.study.add_result("seed-3", "finished", curve(20))  # after the last time that it is polled

    monkeypatch.setattr(WorkerPool, "run_until_done", train)
    study = study_of(tmp_path, Group("", CONFIG, seeds=(3,)), metric="loss")
    assert run_study(study, jobs=1, budget=Budget(90), progress=Log()) == "complete"
    assert told == ["demo with 1 for 90 s: waiting", "seed-3 at 0.5 with 2.0 and 0.25", "finished", "closed"]
