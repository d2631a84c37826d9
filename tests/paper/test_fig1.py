"""Figure 1: the arithmetic of its protocol, results that survive a kill, and unfinished studies."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from verydeep.cli import main
from verydeep.errors import UserError
from verydeep.paper import (
    HALVING,
    NETWORKS,
    QUICK,
    Fig1,
    Fig1Network,
    Fig1Results,
    Fig1Trial,
    Protocol,
    eliminated,
    epochs_left,
    estimate,
    fig1_page,
    fig1_rows,
    gate_biases,
    loss_ratio,
    mean_curves,
    open_layers,
    participants,
    recommended_gate_bias,
    selected_networks,
    settings_of,
    without_halving,
)
from verydeep.studies import Stages, Study, StudyProgress, TrainingRecord, open_study
from verydeep.studies._claim import claim_training, finish_training, report_epochs
from verydeep.training import EpochMetrics, Run

RESULTS = Path(__file__).parents[2] / "results" / "fig1"
SMALL = Protocol(Stages(epochs=(1, 3, 5), trainings=(6, 3, 1)), "digits")
HIGHWAY, PLAIN = Fig1Network("highway", 10), Fig1Network("plain", 10)


def trial(number: int, losses: list[float], status: str = "trained", network: Fig1Network = HIGHWAY) -> Fig1Trial:
    return Fig1Trial(
        number, settings_of(network, number), status, 2.0 * len(losses), tuple(losses), (0.5,) * len(losses)
    )


def filled(folder: Path, network: Fig1Network, trials: list[Fig1Trial], protocol: Protocol = SMALL) -> Fig1Results:
    results = Fig1Results(folder, network, protocol)
    results.trials = {each.trial: each for each in trials}
    return results


FIRST = [trial(number, [loss]) for number, loss in enumerate([0.5, 0.1, 0.9, 0.3, 0.2])]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_the_recorded_trials_have_the_settings_that_the_configurations_draw(network: Fig1Network) -> None:
    """If not, the recorded results are those of another study."""
    recorded = Fig1Results(RESULTS, network, HALVING)
    assert len(recorded.trials) == HALVING.settings
    for number, recorded_trial in recorded.trials.items():
        assert recorded_trial.settings == settings_of(network, number)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_the_stages_name_the_trials_that_were_trained_that_far(network: Fig1Network) -> None:
    trials = Fig1Results(RESULTS, network, HALVING).trials
    for stage, epochs in enumerate(HALVING.stages.epochs):
        trained = {number for number, each in trials.items() if each.epochs >= epochs or stage == 0}
        assert set(participants(trials, HALVING, stage) or ()) == trained
    assert epochs_left(trials, HALVING) == 0


@pytest.mark.slow
def test_recorded_trials_are_not_trained_again_in_a_fresh_clone(tmp_path: Path) -> None:
    results = {path.name: path.read_bytes() for path in RESULTS.glob("*.jsonl")}
    for name, content in results.items():
        (tmp_path / name).write_bytes(content)
    for _ in range(2):
        fig1 = Fig1(HALVING, NETWORKS, tmp_path, tmp_path / "runs")
        study = fig1.start()
        assert study.unfinished() == 0
        assert len(study.optuna.get_trials(deepcopy=False)) == 800
    fig1.train(None, None, StudyProgress())
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.jsonl")} == results
    strict = Fig1(without_halving(HALVING), NETWORKS, tmp_path, tmp_path / "runs").start()
    diverged = sum(each.status == "diverged" for found in fig1.found.values() for each in found.trials.values())
    assert strict.unfinished() == 800 - 80 - diverged


def test_the_configurations_say_what_the_last_stage_does() -> None:
    for network in NETWORKS:
        assert (network.search.train.epochs, network.search.options.trials) == (HALVING.epochs, HALVING.settings)
        assert (network.search.metric, network.search.train.model.depth) == ("train_loss", network.depth)


def test_every_network_has_the_papers_number_of_parameters(tmp_path: Path) -> None:
    rows = fig1_rows([Fig1Results(tmp_path, network, HALVING) for network in NETWORKS], HALVING)
    assert {row.network: row.parameters for row in rows} == {
        "plain-10": 102_463,
        "highway-10": 85_660,
        "plain-20": 153_583,
        "highway-20": 136_660,
        "plain-50": 306_943,
        "highway-50": 289_660,
        "plain-100": 562_543,
        "highway-100": 544_660,
    }


def test_both_families_search_the_same_ranges_and_are_given_the_same_draws() -> None:
    for number in (0, 57, 99):
        plain, highway = (settings_of(Fig1Network(family, 50), number) for family in ("plain", "highway"))
        assert highway.pop("model.gate_bias") == settings_of(Fig1Network("highway", 100), number)["model.gate_bias"]
        assert plain == highway
    shared = {name: domain for name, domain in Fig1Network("highway", 10).space.items() if name != "model.gate_bias"}
    assert shared == PLAIN.space


def test_the_protocol_trains_a_hundred_settings_and_the_last_ten_to_a_hundred_epochs() -> None:
    assert HALVING.stages == Stages(epochs=(2, 10, 100), trainings=(100, 33, 10))
    assert without_halving(HALVING).stages == Stages(epochs=(100,), trainings=(100,))
    assert epochs_left({}, HALVING) == 100 * 2 + 33 * 8 + 10 * 90
    assert epochs_left({}, without_halving(HALVING)) == 10_000


def test_the_best_of_a_complete_stage_go_on_and_diverged_ones_never() -> None:
    trials = {each.trial: each for each in FIRST}
    assert participants(trials, SMALL, 0) == [0, 1, 2, 3, 4, 5]
    assert participants(trials, SMALL, 1) is None
    trials[5] = trial(5, [], "diverged")
    assert participants(trials, SMALL, 1) == [1, 4, 3]
    trials[3] = trial(3, [0.01], "diverged")
    assert participants(trials, SMALL, 1) == [1, 4, 0]
    assert sorted(eliminated(trials, SMALL)) == [2, 3, 5]


def test_a_stage_is_decided_by_its_own_epochs_however_far_a_trial_has_gone_since() -> None:
    trials = {each.trial: each for each in FIRST} | {5: trial(5, [2.0])}
    trials[2] = trial(2, [0.9, 0.001, 0.0001])  # trained on by the strict protocol
    assert participants(trials, SMALL, 1) == [1, 4, 3]


def test_a_run_that_diverged_later_counts_by_its_first_epochs(tmp_path: Path) -> None:
    late = trial(0, [0.3, 0.1, 0.2], "diverged")
    assert [late.best(epochs) for epochs in (1, 2, 3, 4, None)] == [0.3, 0.1, 0.1, math.inf, math.inf]
    result = filled(tmp_path, HIGHWAY, [late, trial(1, [0.5])])
    assert [loss for _, loss in gate_biases([result], 1)[10]] == [0.3, 0.5]


def test_the_study_trains_stage_by_stage_what_is_not_recorded(tmp_path: Path) -> None:
    for each in FIRST:
        Fig1Results(tmp_path, HIGHWAY, SMALL).add(each.trial, each.status, each.metrics)
    study = Fig1(SMALL, NETWORKS, tmp_path, tmp_path / "runs").start()
    tasks = [(task.name, task.goal) for task in study.tasks() if task.state == "ready"]
    assert [name for name, _ in tasks if name.startswith("highway-10/")] == ["highway-10/0005"]
    assert (len(tasks), {goal for _, goal in tasks}) == (1 + 7 * 6, {1})
    study.add_result("highway-10/0005", "paused", trial(5, [2.0]).metrics)
    promoted = [(task.name, task.goal) for task in study.tasks(["highway-10"]) if task.state == "ready"]
    assert promoted == [("highway-10/0001", 3), ("highway-10/0003", 3), ("highway-10/0004", 3)]
    first = claim_training(study, "worker", only=["highway-10", "highway-100"])
    assert first is not None
    assert (first.name, first.goal) == ("highway-100/0000", 1)  # an interrupted study covers every network
    assert first.settings == settings_of(Fig1Network("highway", 100), 0)


def test_what_workers_have_trained_meanwhile_is_recorded(tmp_path: Path) -> None:
    fig1 = Fig1(QUICK, NETWORKS, tmp_path, tmp_path / "runs")
    study = fig1.start()
    lines = [EpochMetrics(epoch, train_loss=1 / (3 * epoch), test_accuracy=0.5, seconds=epoch) for epoch in (1, 2, 3)]
    study.add_result("highway-10/0000", "paused", lines[:1])
    study.add_result("highway-10/0001", "diverged", [EpochMetrics(1, train_loss=math.inf)])
    Fig1(QUICK, NETWORKS, tmp_path, tmp_path / "runs").collect()
    found = Fig1Results(tmp_path, HIGHWAY, QUICK)
    assert {each.trial: (each.status, each.train_loss) for each in found.trials.values()} == {
        0: ("trained", (0.33333,)), 1: ("diverged", ())}  # fmt: skip
    study.add_result("highway-10/0000", "paused", lines[:2])
    for _ in range(2):
        fig1.collect()
        assert [json.loads(line).get("trial") for line in found.file.read_text().splitlines()] == [None, 0, 1, 0]
    assert fig1.start().attempts()["highway-10/0000"].epochs == 2


def test_a_trial_that_has_passed_the_end_of_a_stage_is_recorded(tmp_path: Path) -> None:
    """It may have been promoted at once, between two looks at the study."""
    fig1 = Fig1(QUICK, NETWORKS, tmp_path, tmp_path / "runs")
    study = fig1.start()
    claim = claim_training(study, "worker", only=["highway-10"])
    assert claim is not None
    for line in trial(0, [0.5, 0.4]).metrics:
        report_epochs(study, claim, line)
    fig1.collect()
    assert fig1.found["highway-10"].trials[0].train_loss == (0.5,)


def test_a_failed_trial_is_not_recorded_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claimed: list[str] = []

    def all_die(study: Study, *, on_end: Callable[[TrainingRecord], None], **_: object) -> str:
        claim = claim_training(study, "worker", only=["highway-10"])
        assert claim is not None
        claimed.append(claim.name)
        finish_training(study, claim, {"status": "failed", "reason": "3 workers died", "epochs": 0}, [])
        on_end(study.records(["highway-10"])[0])
        return "complete"

    monkeypatch.setattr("verydeep.paper._train_study.run_study", all_die)
    for _ in range(2):
        with pytest.raises(UserError, match="highway-10/0000 failed: 3 workers died; the same command tries again"):
            Fig1(QUICK, (HIGHWAY,), tmp_path, tmp_path / "runs").train(None, None, StudyProgress())
    assert claimed == ["highway-10/0000"] * 2
    assert Fig1Results(tmp_path, HIGHWAY, QUICK).trials == {}


def test_what_is_left_is_counted_in_epochs_and_in_time(tmp_path: Path) -> None:
    trials = {each.trial: each for each in FIRST}
    assert epochs_left(trials, SMALL) == 1 + 3 * 2 + 1 * 2
    trials[5] = trial(5, [], "diverged")
    assert epochs_left(trials, SMALL) == 3 * 2 + 1 * 2
    result = filled(tmp_path, HIGHWAY, list(trials.values()))
    assert estimate([result], SMALL, 2) == 8 * 2.0 / 2
    untouched = filled(tmp_path, Fig1Network("highway", 100), [])
    assert estimate([untouched], SMALL, 2) is None
    assert estimate([result, untouched], SMALL, 2) == (8 * 2.0 + 14 * 20.0) / 2
    result.trials[1] = replace(trial(1, [0.1, 0.1, 0.1]), seconds=3.0)  # the longest trial gives the time per epoch
    assert estimate([result], SMALL, 2) == 6 * 1.0 / 2


def test_a_truncated_line_loses_only_its_trial(tmp_path: Path) -> None:
    results = Fig1Results(tmp_path, HIGHWAY, SMALL)
    lines = [EpochMetrics(1, train_loss=0.123456789, test_accuracy=0.9, seconds=1.0)]
    for number in range(3):
        results.add(number, "trained", lines)
    whole = results.file.read_bytes()
    results.file.write_bytes(whole[:-10])
    again = Fig1Results(tmp_path, HIGHWAY, SMALL)
    assert sorted(again.trials) == [0, 1]
    again.add(2, "trained", lines)
    assert Fig1Results(tmp_path, HIGHWAY, SMALL).trials == results.trials
    assert results.trials[0].train_loss == (0.12346,)


def test_results_of_another_study_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Fig1Results(tmp_path, HIGHWAY, HALVING).add(0, "diverged", [])
    assert main(["reproduce", "fig1", "--quick", "--minutes", "0", "--results", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "belongs to another study" in said
    assert said.count("\n") == 1


def test_an_empty_study_says_that_nothing_was_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "fig1", "--quick", "--minutes", "0", "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.count("not yet run") == 8 + 5
    assert "no epoch trained yet" in said
    assert (tmp_path / "fig1.png").exists()


def test_the_table_and_the_curves_are_those_of_the_best(tmp_path: Path) -> None:
    highway = filled(tmp_path, Fig1Network("highway", 100), [trial(n, [1.0, 0.01 * (n + 1)]) for n in range(12)])
    plain = filled(tmp_path, Fig1Network("plain", 100), [trial(n, [2.0 + n], network=PLAIN) for n in range(12)])
    rows = fig1_rows([plain, highway], SMALL)
    assert loss_ratio(rows) == pytest.approx(200)
    assert rows[1].best == 0.01
    assert rows[1].top == pytest.approx(0.055)
    assert mean_curves([highway])["highway-100"] == pytest.approx([1.0, 0.055])
    text = fig1_page([plain, highway], SMALL)
    assert "than the plain network's | 200 times | agrees |" in text
    assert "verdict so far" in text
    assert "highway networks are needed" in text
    assert "The study is not finished" in text


def test_the_recommended_gate_bias_opens_as_many_layers_as_the_best_had(tmp_path: Path) -> None:
    """At both depths the best third starts with half a layer open, and the others with a quarter of all or none."""

    def searched(depth: int) -> Fig1Results:
        half, most, none = -math.log(depth / 0.5 - 1), -1.0, -10.0
        biases = [half] * 10 + [most] * 10 + [none] * 10
        return filled(
            tmp_path,
            Fig1Network("highway", depth),
            [
                Fig1Trial(n, settings_of(HIGHWAY, n) | {"model.gate_bias": bias}, "trained", 1.0, (0.1 + n,), (0.9,))
                for n, bias in enumerate(biases)
            ],
        )

    found = [searched(20), searched(100)]
    rows = open_layers(found, 1)
    assert [(row.low, row.good, row.settings) for row in rows if any(row.settings.values())] == [
        (0, {20: 0, 100: 0}, {20: 10, 100: 10}),
        (0.3, {20: 10, 100: 10}, {20: 10, 100: 10}),
        (3, {20: 0, 100: 0}, {20: 10, 100: 0}),
        (10, {20: 0, 100: 0}, {20: 0, 100: 10}),
    ]
    low, high = recommended_gate_bias(rows)[1000]
    assert 1000 / (1 + math.exp(-low)) == pytest.approx(0.3)
    assert 1000 / (1 + math.exp(-high)) == pytest.approx(1.0)
    assert recommended_gate_bias(open_layers([searched(20)], 1)) == {}
    assert "| 0.3 to 1 | 100% of 10 | 100% of 10 | 100% of 20 |" in fig1_page(found, SMALL)


@pytest.mark.parametrize("best", [0, 6])
def test_the_recommended_gate_bias_stays_within_what_was_searched(best: int) -> None:
    rows = [replace(row, good={10: 5}, settings={10: 5}) for row in open_layers([], 1)]
    rows[best] = replace(rows[best], settings={10: 20}, good={10: 20})
    rows[3] = replace(rows[3], settings={10: 30}, good={10: 29})  # good, but not beside the best
    assert set(recommended_gate_bias(rows)) == {10, 20, 50, 100, 200, 500, 1000}
    found = recommended_gate_bias(rows)
    assert all(-10 <= low <= high <= -1 for low, high in found.values())
    assert recommended_gate_bias([replace(row, settings={10: 30}, good={10: 10}) for row in rows])[100] == (-10, -1)
    rows[2] = replace(rows[2], settings={10: 40}, good={10: 40})
    rows[1] = replace(rows[1], settings={10: 40}, good={10: 14})
    if best:
        low, high = recommended_gate_bias(rows)[100]
        assert 100 / (1 + math.exp(-low)) == pytest.approx(0.03)
        assert 100 / (1 + math.exp(-high)) == pytest.approx(1.0)


@pytest.mark.slow
def test_the_quick_study_in_pieces_equals_one_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def reproduce(folder: str) -> str:
        options = ["--quick", "--only", "highway-10", "--jobs", "1", "--results", str(tmp_path / folder)]
        assert main(["reproduce", "fig1", *options]) == 0
        return capsys.readouterr().out

    assert "| highway-10 | 49,660 | 4 of 4 |" in reproduce("whole")
    file = tmp_path / "pieces" / "highway-10.jsonl"
    file.parent.mkdir()
    head, *lines = (tmp_path / "whole" / "highway-10.jsonl").read_text().splitlines(keepends=True)
    first = {each["trial"]: each for each in map(json.loads, reversed(lines))}
    for each in first.values():
        each |= {name: each[name][:1] for name in ("train_loss", "test_accuracy")}
    written = head + "".join(json.dumps(each) + "\n" for each in first.values())
    file.write_text(written + lines[-1][:20])  # killed in the second stage, runs lost
    reproduce("pieces")
    whole, pieces = (Fig1Results(tmp_path / name, HIGHWAY, QUICK).trials for name in ("whole", "pieces"))
    assert {n: each.train_loss for n, each in whole.items()} == {n: each.train_loss for n, each in pieces.items()}
    assert sorted(each.epochs for each in whole.values()) == [1, 1, 2, 3]
    assert epochs_left(whole, QUICK) == 0
    finalist = max(whole.values(), key=lambda each: each.epochs)
    for name in ("whole", "pieces"):
        run = Run.load(tmp_path / name / "runs" / "fig1-quick" / "highway-10" / f"{finalist.trial:04}")
        assert tuple(float(f"{line.train_loss:.5g}") for line in run.metrics) == finalist.train_loss
        assert not (run.path / "checkpoint").exists()
        assert len(list(run.path.parent.iterdir())) == 1  # the runs of eliminated settings are removed
    attempts = open_study(run.path.parents[1]).attempts()
    trained = {name: each.trials[-1].user_attrs.get("worker") for name, each in attempts.items()}
    assert sum(worker is not None for worker in trained.values()) == 2  # only those of the second stage


def test_all_networks_are_selected_by_default() -> None:
    assert len(selected_networks(None)) == 8
    assert [network.name for network in selected_networks("plain-10, highway-100")] == ["plain-10", "highway-100"]


def test_a_study_from_before_a_setting_existed_goes_on(tmp_path: Path) -> None:
    results = Fig1Results(tmp_path, HIGHWAY, HALVING)
    results.add(0, "diverged", [])
    first, *rest = results.file.read_text().splitlines(keepends=True)
    head = json.loads(first)
    del head["config"]["label_smoothing"]
    results.file.write_text(json.dumps(head) + "\n" + "".join(rest))
    assert set(Fig1Results(tmp_path, HIGHWAY, HALVING).trials) == {0}


def test_the_page_is_what_the_recorded_trials_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it is not: verydeep reproduce fig1 --minutes 0. The functional ANOVA is left out: it takes seconds."""
    monkeypatch.setattr("verydeep.paper.fig1._page.influences", lambda *_: [])
    recorded = [Fig1Results(RESULTS, network, HALVING) for network in NETWORKS]
    pages = ((RESULTS / "fig1.md").read_text(), fig1_page(recorded, HALVING))
    committed, written = (re.sub("## Which settings matter\n.*?\n##", "##", page, flags=re.S) for page in pages)
    assert committed == written
