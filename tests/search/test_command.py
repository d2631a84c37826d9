"""`verydeep search` and what it leaves behind."""

import csv
import json
import os
import signal
from dataclasses import replace
from io import StringIO
from pathlib import Path
from threading import Timer
from unittest.mock import Mock

import pytest
from _postgres import Server
from rich.console import Console

from verydeep.cli import main
from verydeep.cli.views._search import trials_table
from verydeep.config import from_dict
from verydeep.errors import UserError
from verydeep.files import read_toml
from verydeep.search import Choices, open_search, ranked, read_search, start_search
from verydeep.studies import Budget, TrainingRecord, draw, with_settings, work
from verydeep.studies._claim import claim_training
from verydeep.training import Run, TrainConfig

from .conftest import Write, start, wait_until


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1, printed
    return printed


@pytest.fixture
def searched(write: Write, tmp_path: Path) -> Path:
    """A study that this process worked off."""
    folder = tmp_path / "study"
    assert work(start_search(folder, read_search(write(trials=5))))
    return folder


def test_show_lists_the_best_first_and_writes_csv_json_and_pictures(
    searched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", "show", str(searched), "--top", "3"]) == 0
    printed = capsys.readouterr().out
    best = ranked(open_search(searched).records(), maximise=True)
    values = [f"{record.value:.2%}" for record in best]
    assert values[0] in next(line for line in printed.splitlines() if "finished" in line)
    assert printed.count("finished") == 3
    assert "5 of 5 trials done" in printed
    assert "importance (uncertain after only 5 trials): " in printed
    rows = list(csv.DictReader((searched / "show" / "trials.csv").read_text().splitlines()))
    found = json.loads((searched / "show" / "trials.json").read_text())
    assert [float(row["optim.lr"]) for row in rows] == [t["settings"]["optim.lr"] for t in found["trials"]]
    assert [len(trial["curve"]) for trial in found["trials"]] == [1] * 5
    for picture in ("slices.png", "parallel.png"):
        assert (searched / "show" / picture).read_bytes().startswith(b"\x89PNG")


def test_trials_that_wait_make_nothing_more_certain(searched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = open_search(searched).config
    start_search(searched, replace(config, options=replace(config.options, trials=40)))
    assert main(["search", "show", str(searched)]) == 0
    assert "importance (uncertain after only 5 trials): " in capsys.readouterr().out


def test_best_writes_a_configuration_that_trains_to_the_same_result(
    searched: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", "best", str(searched)]) == 0
    study = open_search(searched)
    best = ranked(study.records(), maximise=True)[0]
    config = from_dict(TrainConfig, read_toml(searched / "best.toml"))
    assert config == with_settings(study.config.train, best.settings)
    again = ["train", str(searched / "best.toml"), "--folder", str(tmp_path / "again"), "--threads", "1", "--quiet"]
    assert main(again) == 0
    assert Run.load(tmp_path / "again").metrics[0].valid_accuracy == best.value


def test_the_training_that_is_selected_is_tested(write: Write, tmp_path: Path) -> None:
    rows = "".join(f"{i % 7},{i * i % 11},{'ab'[i % 7 > 2]}\n" for i in range(60))
    (tmp_path / "own.csv").write_text("u,v,target\n" + rows)
    file = write(trials=1)
    file.write_text(file.read_text().replace('"digits"', f"'{tmp_path / 'own.csv'}'"))
    work(start_search(tmp_path / "study", read_search(file)))
    assert open_search(tmp_path / "study").config.train.evaluate_test == "never"
    assert main(["search", "best", str(tmp_path / "study")]) == 0
    assert from_dict(TrainConfig, read_toml(tmp_path / "study" / "best.toml")).evaluate_test == "end"


def test_a_trial_is_a_run_like_any_other(searched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(searched / "trials" / "0000"), "--json"]) == 0
    assert "accuracy" in capsys.readouterr().out


def test_more_trials_continue_a_study_with_the_settings_that_come_next(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    work(start_search(folder, read_search(write(trials=2))))
    before = [record.settings for record in open_search(folder).records()]
    study = start_search(folder, read_search(write(trials=3)))
    assert work(study)
    after = study.records()
    assert [record.settings for record in after[:2]] == before
    assert [record.attempts for record in after] == [1, 1, 1]


@pytest.mark.slow
def test_ctrl_c_saves_and_the_same_command_goes_on(write: Write, tmp_path: Path) -> None:
    file, folder = write(trials=2, epochs=200), tmp_path / "study"
    process = start(file, "--study", folder, "--jobs", 1)
    metrics = folder / "trials" / "0000" / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") >= 2)
    process.send_signal(signal.SIGINT)
    printed = process.communicate()[1].decode()
    assert (process.returncode, "continue with the same command" in printed) == (130, True), printed
    trained = Run.load(folder / "trials" / "0000").metrics
    assert 2 <= len(trained) < 200
    assert [record.status for record in open_search(folder).records()] == ["waiting", "waiting"]
    assert work(open_search(folder))
    found = open_search(folder).records()
    assert [(record.status, record.epochs) for record in found] == [("finished", 200)] * 2
    assert found[0].curve[: len(trained)] == trained
    assert found[0].attempts == 2


@pytest.mark.slow
def test_a_worker_that_someone_tells_to_stop_is_replaced(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    process = start(write(trials=1, epochs=200), "--study", folder, "--jobs", 1)
    metrics = folder / "trials" / "0000" / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") >= 2)
    (log,) = (folder / "workers").glob("*-0.log")
    (worker,) = [int(lock.stem.split("-")[-2]) for lock in log.parent.glob("*.lock")]
    os.kill(worker, signal.SIGTERM)
    printed = process.communicate()[1].decode()
    assert (process.returncode, printed) == (0, "")
    (found,) = open_search(folder).records()
    assert (found.status, found.epochs, found.attempts) == ("finished", 200, 2)


def test_a_budget_of_epochs_is_kept_and_the_trial_goes_on_later(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    study = start_search(folder, read_search(write(trials=3, epochs=4)))
    assert not work(study, budget=Budget.read("6 epochs"))
    assert sum(record.epochs for record in study.records()) == 6
    assert work(study)
    assert [record.epochs for record in study.records()] == [4, 4, 4]


def test_a_budget_of_time_ends_a_search_that_would_take_longer(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    study = start_search(folder, read_search(write(trials=2, epochs=100_000)))
    assert not work(study, budget=Budget.read("1s"))
    assert {record.status for record in study.records()} == {"waiting"}


@pytest.mark.slow
def test_a_used_budget_of_epochs_asks_for_a_larger_one(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "study"
    study = start_search(folder, read_search(write(trials=3, epochs=4)))
    assert not work(study, budget=Budget.read("2 epochs"))
    assert main(["search", str(write(trials=3, epochs=4)), "--study", str(folder), "--budget", "2 epochs"]) == 0
    assert "continue with a larger --budget" in one_line(capsys)
    assert main(["search", str(write()), "--budget", "0h"]) == 2
    assert "must be positive; without a budget, everything is trained" in one_line(capsys)


def test_a_study_that_was_moved_is_the_same_study(searched: Path, write: Write) -> None:
    moved = searched.rename(searched.with_name("moved"))
    assert [record.status for record in open_search(moved).records()] == ["finished"] * 5
    assert [record.status for record in start_search(moved, read_search(write(trials=6))).records()] == [
        *["finished"] * 5,
        "waiting",
    ]


def test_a_study_of_an_earlier_version_keeps_its_name_when_it_is_moved(searched: Path) -> None:
    known = json.loads((searched / "study.json").read_text())
    (searched / "study.json").write_text(json.dumps({key: known[key] for key in known.keys() - {"name"}}))
    moved = searched.rename(searched.with_name("moved"))
    assert open_search(moved).name == "study"
    assert json.loads((moved / "study.json").read_text()) == known


def test_of_equally_accurate_trials_the_one_of_the_lowest_loss_is_best() -> None:
    found = [
        TrainingRecord(0, "finished", 0.9, loss=0.5),
        TrainingRecord(1, "finished", 0.9, loss=0.1),
        TrainingRecord(2, "finished", 0.8),
    ]
    assert [record.number for record in ranked(found, maximise=True)] == [1, 0, 2]


def test_the_loss_beside_an_accuracy_is_that_of_its_epochs(searched: Path) -> None:
    for record in open_search(searched).records():
        curve = [line.to_dict() for line in record.curve]
        assert record.loss == min(e["valid_loss"] for e in curve if e["valid_accuracy"] == record.value)


def test_the_space_may_give_what_the_base_lacks(write: Write) -> None:
    file = write()
    text = file.read_text() + "schedule.milestones = { choices = [[1, 2], [2]] }\n"
    file.write_text(text.replace("[search]", '[schedule]\nname = "multistep"\n\n[search]'))
    assert read_search(str(file)).space["schedule.milestones"] == Choices(((1, 2), (2,)))
    either = 'schedule.name = { choices = ["constant", "multistep"] }\nschedule.milestones'
    file.write_text(file.read_text().replace("schedule.milestones", either))
    assert len(read_search(file).space) == 5
    file.write_text(file.read_text().replace("schedule.milestones", "# "))
    with pytest.raises(UserError, match="multistep schedule needs"):
        read_search(file)


def test_a_misspelt_command_and_a_search_that_is_trained_are_told_apart(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", "sho", "runs/any"]) == 2
    assert "did you mean 'show'?" in one_line(capsys)
    assert main(["train", str(write())]) == 2
    assert "it is for a search (verydeep search)" in one_line(capsys)
    assert main(["search", str(write(more="halving = 3"))]) == 2
    assert "expected a table, got int" in one_line(capsys)


@pytest.mark.parametrize("text", ["soon", "5", "-1h", "1.5 epochs", ""])
def test_a_budget_that_is_none_is_refused(text: str, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", str(write()), f"--budget={text}"]) == 2
    assert "expected a time or a number of epochs" in one_line(capsys)


def test_a_run_that_diverges_is_a_result_and_ranks_last(write: Write, tmp_path: Path) -> None:
    file, folder = write(trials=4), tmp_path / "study"
    text = file.read_text().replace("low = 0.01, high = 1.0", "low = 0.1, high = 1e12")
    file.write_text(text.replace("checkpoint_every", "divergence_factor = 2.0\ncheckpoint_every"))
    study = start_search(folder, read_search(file))
    assert work(study)
    found = study.records()
    assert {"diverged"} <= {record.status for record in found}
    assert all((record.status == "diverged") == (record.value is None) for record in found)
    assert ranked(found, maximise=True)[-1].status == "diverged"
    assert all(record.attempts == 1 for record in found)


def test_settings_that_cannot_be_trained_are_a_result_too(write: Write, tmp_path: Path) -> None:
    file, folder = write(trials=4), tmp_path / "study"
    file.write_text(file.read_text().replace("low = 2, high = 4", "low = -9, high = 2"))
    study = start_search(folder, read_search(file))
    assert work(study)
    failed = [record for record in study.records() if record.settings["model.depth"] < 0]
    assert failed
    assert all("must be at least 0; got" in record.reason for record in failed)


def test_tpe_learns_from_the_trials_before_and_completes(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    study = start_search(folder, read_search(write(trials=13, more='sampler = "tpe"')))
    assert work(study)
    found = study.records()
    assert len({record.settings["optim.lr"] for record in found}) == 13
    drawn = [draw(study.config.space, 0, number) for number in range(13)]
    assert [record.settings for record in found[:10]] == drawn[:10]
    assert all(record.settings != settings for record, settings in zip(found[10:], drawn[10:], strict=True))


def test_halving_stops_the_worse_trials_early(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    study = start_search(folder, read_search(write(trials=9, epochs=4, more="halving = {first = 1, keep = 2}")))
    assert work(study)
    found = study.records()
    assert {record.status for record in found} == {"finished", "pruned"}
    assert all((record.status == "finished") == (record.epochs == 4) for record in found)
    best = ranked(found, maximise=True)[0]
    assert best.status == "finished"


def test_another_search_in_the_same_folder_is_refused(
    searched: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", str(write(trials=5, epochs=2)), "--study", str(searched)]) == 2
    assert "was started with other settings (epochs changed)" in one_line(capsys)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (
            "model.depth = {low = -1, high = 9}",
            "search.space.model.depth: -1 cannot be searched: depth is the number of hidden layers",
        ),
        (
            'model.activation = {choices = ["tanh", "relo"]}',
            "search.space.model.activation: 'relo' cannot be searched: unknown activation 'relo'; did you mean 'relu'?",
        ),
    ],
)
def test_networks_that_cannot_be_are_refused_before_any_is_trained(
    space: str, words: str, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write()
    file.write_text(file.read_text().partition("[search.space]")[0] + f"[search.space]\n{space}\n")
    assert main(["search", str(file), "--study", str(tmp_path / "study")]) == 2
    assert words in one_line(capsys)
    assert not (tmp_path / "study").exists()


def test_a_folder_that_is_no_study_is_left_alone(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "thesis.tex").write_text("")
    assert main(["search", str(write()), "--study", str(thesis)]) == 2
    assert "exists and is not a study" in one_line(capsys)
    for command in ("show", "best"):
        assert main(["search", command, str(thesis)]) == 2
        assert "no study here" in one_line(capsys)
    assert [path.name for path in thesis.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://root@nowhere/x", "expected postgresql://"),
        ("postgresql://me:secret@server:abc/db", "postgresql://me@server:abc/db: not a server's address"),
        ("postgresql://{me}:secret@127.0.0.1:1/nowhere", "the storage cannot be used: "),
        ("postgresql://someone:secret@127.0.0.1:1/nowhere", "the storage cannot be used: "),
        ("someone:secret@127.0.0.1/nowhere", "storage: expected postgresql://"),
        ("host=127.0.0.1 PASSWORD=secret", "storage: expected postgresql://"),
        ("secret", "storage: expected postgresql://"),
        ("postgresql://someone:my@secret@server/db", "storage postgresql://someone@server/db: write every @"),
        ("postgresql://server:1/db?password=my@secret", "storage postgresql://server@: write every @"),
    ],
)
def test_a_storage_that_is_down_or_none_is_named_without_its_password(
    url: str, words: str, write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", str(write()), "--study", str(tmp_path / "study"), "--storage", url]) == 2
    printed = one_line(capsys)
    assert words in printed
    assert "secret" not in printed


def test_a_study_keeps_its_journal_if_the_environment_names_a_server(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my study"
    assert work(start_search(folder, read_search(write(trials=1))))
    monkeypatch.setenv("VERYDEEP_STORAGE", "postgresql://someone@127.0.0.1:1/nowhere")
    assert main(["worker", str(folder)]) == 0
    assert main(["search", str(write(trials=1)), "--study", str(folder)]) == 0
    assert main(["search", "show", str(folder), "--json"]) == 0
    assert f"verydeep search show '{folder}'\n" in capsys.readouterr().out
    assert main(["search", str(write()), "--study", str(tmp_path / "new")]) == 2
    assert "the storage cannot be used: " in one_line(capsys)


def test_train_does_not_resume_a_search_and_says_what_does(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start_search(tmp_path / "study", read_search(write()))
    assert main(["train", "--resume", str(tmp_path / "study")]) == 2
    assert one_line(capsys).endswith(f"or with: verydeep worker {tmp_path / 'study'}\n")


def test_a_mistyped_option_is_named_without_the_password_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "x", "--storag", "postgresql://me:secret@server/db"]) == 2
    printed = one_line(capsys)
    assert "--storag" in printed
    assert "secret" not in printed


def test_a_journal_whose_studies_have_damaged_names_is_named_in_a_line(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start_search(tmp_path / "mine", read_search(write()))
    monkeypatch.setattr("optuna.load_study", Mock(side_effect=KeyError("mine")))
    monkeypatch.setattr("optuna.get_all_study_names", lambda _storage: [3, "another"])
    assert main(["search", "best", str(tmp_path / "mine")]) == 2
    assert "it has: 3, another" in one_line(capsys)


@pytest.mark.slow
def test_a_server_refuses_another_search_under_the_same_name(
    write: Write, tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    start_search(tmp_path / "here" / "mine", read_search(write()), storage=server.url)
    there = str(tmp_path / "there" / "mine")
    assert main(["search", str(write(epochs=9)), "--study", there, "--storage", server.url]) == 2
    assert "study 'mine' was started with other settings" in one_line(capsys)
    assert main(["worker", "nobody", "--storage", server.url]) == 2
    assert "the storage has no study 'nobody'" in one_line(capsys)


@pytest.mark.slow
def test_workers_from_other_folders_share_a_servers_study(
    write: Write, tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a" / "shared", tmp_path / "b" / "shared"
    study = start_search(first, read_search(write(trials=3)), storage=server.url)
    assert not work(study, budget=Budget.read("1 epochs"))
    assert main(["worker", str(second), "--storage", server.url, "--quiet"]) == 0
    found = study.records()
    assert [record.status for record in found] == ["finished"] * 3
    assert [Path(record.run).parts[-4] for record in found] == ["a", "b", "b"]
    assert main(["search", "show", str(second)]) == 0
    assert "3 of 3 trials done" in capsys.readouterr().out


@pytest.mark.slow
def test_a_server_that_is_gone_for_a_moment_costs_nothing(write: Write, tmp_path: Path, server: Server) -> None:
    folder = tmp_path / "patient"
    study = start_search(folder, read_search(write(trials=3, epochs=5)), storage=server.url)
    again: list[Timer] = []

    def fall(line: str) -> None:
        if not again:  # after the first trial the server falls, and is back while the worker wants to go on
            server.stop()
            again.append(Timer(0.5, server.start))
            again[0].start()

    assert work(study, report=fall)
    again[0].join()
    found = open_search(folder, storage=server.url).records()
    assert [(record.status, record.epochs) for record in found] == [("finished", 5)] * 3


@pytest.mark.slow
def test_data_with_validation_samples_of_its_own_is_judged_by_them(write: Write, tmp_path: Path) -> None:
    rows = [f"{x},{x > 4}" for x in range(9)] * 3
    for part in ("train", "valid", "test"):
        (tmp_path / "own").mkdir(exist_ok=True)
        (tmp_path / "own" / f"{part}.csv").write_text("\n".join(["x,y", *rows]))
    file, folder = write(trials=1), tmp_path / "study"
    source = f'data = {{ source = "{tmp_path / "own"}", target = "y" }}'
    file.write_text(file.read_text().replace('data = { source = "digits", validation = 0.2 }', source))
    assert main(["search", str(file), "--study", str(folder), "--jobs", "1", "--quiet"]) == 0
    study = open_search(folder)
    (found,) = study.records()
    assert study.metric == "valid_loss"
    assert found.value == found.curve[0].valid_loss
    assert main(["search", str(file), "--study", str(folder), "--quiet"]) == 0


def test_a_line_cut_short_by_a_kill_costs_a_study_nothing(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    study = start_search(folder, read_search(write(trials=3)))
    assert not work(study, budget=Budget.read("1 epochs"))
    journal = folder / "journal.log"
    whole = journal.read_bytes()
    with journal.open("ab") as file:
        file.write(whole.splitlines()[-1][:20])
    assert work(open_search(folder))
    assert journal.read_bytes().startswith(whole)
    assert [record.status for record in open_search(folder).records()] == ["finished"] * 3


@pytest.mark.slow
def test_a_password_given_to_a_worker_is_in_no_file(
    write: Write, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.url.replace("postgres@", "postgres:SECRET@") + "&password=SECRET"
    folder = tmp_path / "secretive"
    start_search(folder, read_search(write(trials=1)), storage=url)
    command = ["worker", str(folder), "--quiet", f"--storage={url}"]
    monkeypatch.setattr("sys.argv", ["verydeep", *command])
    assert main(command) == 0
    assert main(["report", str(folder / "trials" / "0000"), "-o", str(tmp_path / "report.html")]) == 0
    files = [path for path in (*folder.rglob("*"), tmp_path / "report.html") if path.is_file()]
    assert "--storage=postgresql://postgres@" in (folder / "trials" / "0000" / "environment.json").read_text()
    assert [path for path in files if b"SECRET" in path.read_bytes()] == []


@pytest.mark.parametrize("seed", [42949, -3])
def test_tpe_takes_any_seed(seed: int, write: Write, tmp_path: Path) -> None:
    file = write(trials=12, more=f'sampler = "tpe"\nseed = {seed}')
    study = start_search(tmp_path / "study", read_search(file))
    with study.store.working("anna"):
        claims = [claim_training(study, "anna") for _ in range(12)]
    assert len({json.dumps(claim.settings) for claim in claims if claim is not None}) == 12


def test_show_refuses_to_list_fewer_than_one(searched: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "show", str(searched), "--top", "-1"]) == 2
    assert "--top must be at least 1" in one_line(capsys)


def test_the_table_of_trials_is_readable_at_60_columns() -> None:
    settings = {"optim.lr": 0.1234, "model.depth": 20, "model.activation": "tanh", "model.gate_bias": -3.0}
    console = Console(width=60, file=StringIO())
    rows = [TrainingRecord(number, "finished", 0.5, settings=settings) for number in (7, 12)]
    console.print(trials_table(rows, "valid_accuracy", width=60))
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    assert max(map(len, shown.splitlines())) <= 60
    for words in ("trial", "settings", "lr=0.123", "activation=tanh", "gate_bias=-3"):
        assert words in shown
