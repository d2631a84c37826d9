"""The verdicts on the paper's statements, in both directions, and the files behind them."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from verydeep.cli import main
from verydeep.errors import UserError
from verydeep.paper import EXPERIMENTS, HALVING, Fig1Network, Fig1Results, read_fig1
from verydeep.paper._verdict import Verdict, any_verdict, share_verdict
from verydeep.paper.claims._experiment import TRAINS, ClaimCurve, Conclusion, Evidence, Report, best_losses, by_label
from verydeep.paper.claims._experiments import selected_experiments
from verydeep.paper.claims._page import ClaimLine, claims_page, count_verdicts
from verydeep.paper.claims._results import ClaimResult
from verydeep.paper.claims.experiments._competition import deeper_verdict, deepest_trained, limit_verdict
from verydeep.paper.claims.experiments._conv_bias import guide_verdict
from verydeep.paper.claims.experiments._depth import DepthAnswerOfLesions, needed_verdict
from verydeep.paper.claims.experiments._forms import FORMS, forms_verdict
from verydeep.paper.claims.experiments._gate_bias import gate_bias_verdict
from verydeep.paper.claims.experiments._inside import (
    INSIDE,
    correlation,
    correlation_verdict,
    depth_of_routing_verdict,
    first_layers_verdict,
    half_within,
    idle_verdict,
    most_verdict,
    routing_verdict,
    seeds_verdict,
    selective_verdict,
    stripes_verdict,
)
from verydeep.paper.claims.experiments._inside_search import CIFAR, MNIST, SEARCHES, TanhSearch
from verydeep.paper.claims.experiments._longer import longer_verdict
from verydeep.paper.claims.experiments._parity import PARITY, parity_verdict
from verydeep.paper.claims.experiments._resized import resized_verdict
from verydeep.paper.claims.experiments._skips import skips_verdict
from verydeep.paper.claims.experiments._speed import speed_verdict, wilson_interval
from verydeep.paper.claims.experiments._supervision import supervision_verdict
from verydeep.paper.claims.experiments._tables import (
    at_least_verdict,
    competitive_verdict,
    near_verdict,
    untrainable_verdict,
)
from verydeep.paper.claims.experiments._thin_maxout import thin_maxout_verdict
from verydeep.paper.claims.experiments._variants import variants_verdict
from verydeep.paper.claims.experiments._very_deep import very_deep_verdict
from verydeep.paper.fig1._claims import faster_verdict, shallow_verdict
from verydeep.training import EpochMetrics

ROOT = Path(__file__).parents[2]
AGREES: Verdict = "agrees"
IN_PART: Verdict = "differs in part"
DISAGREES: Verdict = "disagrees"
LOW, HIGH = TRAINS / 2, TRAINS * 2  # losses of a network that trains, and of one that does not
MACHINE = {"processor": "a processor"}
LESIONS = DepthAnswerOfLesions("a problem", 3, 2, 4)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (share_verdict(3, 3), AGREES), (share_verdict(2, 3), IN_PART), (share_verdict(1, 2), DISAGREES),
        (any_verdict(2, 2), AGREES), (any_verdict(1, 3), IN_PART), (any_verdict(0, 2), DISAGREES),
        (variants_verdict([LOW, LOW]), AGREES), (variants_verdict([LOW, LOW, math.inf]), IN_PART),
        (variants_verdict([LOW, HIGH]), DISAGREES),
        (deeper_verdict([30, 20], [10, 5]), AGREES), (deeper_verdict([30, 10], [10, 5]), IN_PART),
        (deeper_verdict([10, 10], [20, 5]), DISAGREES),
        (limit_verdict([{10: 0.1, 20: 0.2, 30: 0.3}]), AGREES),
        (limit_verdict([{10: 0.1, 30: 0.3, 50: 0.4, 100: 0.1}]), IN_PART),
        (limit_verdict([{10: 0.1, 30: 0.15}]), DISAGREES), (limit_verdict([{10: LOW * 1.5, 30: HIGH}]), AGREES),
        (forms_verdict({"a": [LOW, LOW], "b": [LOW]}), AGREES),
        (forms_verdict({"a": [LOW, HIGH], "b": [LOW]}), IN_PART),
        (forms_verdict({"a": [math.inf]}), DISAGREES),
        (gate_bias_verdict({50: {0.0: HIGH, -2.0: LOW}}), AGREES),
        (gate_bias_verdict({10: {0.0: 0.1, -2.0: 0.2}, 50: {0.0: math.inf, -2.0: LOW}}), IN_PART),
        (gate_bias_verdict({50: {0.0: 3 * HIGH, -2.0: HIGH}}), DISAGREES),
        (very_deep_verdict([[0.5, 0.4], [0.6, 0.3]]), AGREES), (very_deep_verdict([[0.5, 0.4], [0.3, 0.4]]), IN_PART),
        (very_deep_verdict([[HIGH, HIGH], []]), DISAGREES),
        (skips_verdict({10: [0.1, 0.2]}, {10: [0.3, 0.3]}), AGREES),
        (skips_verdict({10: [0.1], 50: [0.4]}, {10: [0.3], 50: [0.3]}), IN_PART),
        (skips_verdict({10: [0.1, 0.3]}, {10: [0.2, 0.4]}), DISAGREES),
        (supervision_verdict([([0.96, 0.95], [0.90, 0.89])]), AGREES),
        (supervision_verdict([([0.96, 0.95], [0.90, 0.89]), ([0.9], [0.9])]), IN_PART),
        (supervision_verdict([([0.96, 0.90], [0.95, 0.89])]), DISAGREES),
        (shallow_verdict([5e-5, 9e-5]), AGREES), (shallow_verdict([5e-5, 1e-3]), IN_PART),
        (shallow_verdict([1e-3, 1e-3]), DISAGREES),
        (longer_verdict(5e-5, 5e-5), AGREES), (longer_verdict(2e-4, 5e-5), IN_PART),
        (longer_verdict(2e-4, 2e-4), DISAGREES),
        (faster_verdict([(10, 20), (10, None)]), AGREES), (faster_verdict([(10, 20), (5, 6), (10, 10)]), IN_PART),
        (faster_verdict([(10, 20), (None, None)]), DISAGREES),
        (speed_verdict({10: (90, 100)}), AGREES), (speed_verdict({10: (90, 100), 20: (52, 100)}), IN_PART),
        (speed_verdict({10: (52, 100)}), DISAGREES),
        (competitive_verdict(0.996, [0.9965, 0.995]), AGREES), (competitive_verdict(0.995, [0.997, 0.995]), IN_PART),
        (competitive_verdict(0.98, [0.997, 0.995]), DISAGREES),
        (at_least_verdict([(0.9, 0.89), (0.9, 0.9005)]), AGREES), (at_least_verdict([(0.9, 0.8), (0.8, 0.9)]), IN_PART),
        (at_least_verdict([(0.8, 0.9)]), DISAGREES),
        (near_verdict([(0.92, 0.925), (0.66, 0.66)]), AGREES), (near_verdict([(0.92, 0.925), (0.6, 0.66)]), IN_PART),
        (near_verdict([(0.9, 0.925)]), DISAGREES),
        (parity_verdict([1.0, 0.995]), AGREES), (parity_verdict([1.0, 0.5]), IN_PART),
        (parity_verdict([0.5]), DISAGREES),
        (resized_verdict([LOW, LOW], [LOW]), AGREES), (resized_verdict([LOW], [LOW / 3]), IN_PART),
        (resized_verdict([HIGH], [LOW]), DISAGREES),
        (guide_verdict({10: {-1.0: 0.2, -4.0: 0.18}}), AGREES),
        (guide_verdict({10: {-1.0: 0.2}, 20: {-2.0: 0.9, 0.0: 0.2}}), IN_PART),
        (guide_verdict({30: {-3.0: math.inf, 0.0: 0.2}}), DISAGREES),
        (needed_verdict([LESIONS]), AGREES), (needed_verdict([LESIONS, LESIONS, replace(LESIONS, used=40)]), IN_PART),
        (needed_verdict([replace(LESIONS, used=1)]), DISAGREES),
        (thin_maxout_verdict({5: 0.7, 7: 0.1, 11: 0.55}, 0.7), AGREES),
        (thin_maxout_verdict({5: 0.7, 7: 0.65, 11: 0.1}, 0.7), IN_PART),
        (thin_maxout_verdict({5: 0.7, 7: 0.65}, 0.7), DISAGREES),
        (thin_maxout_verdict({5: 0.1, 7: 0.1}, 0.7), DISAGREES),
        (untrainable_verdict(0.1, 0.89), AGREES), (untrainable_verdict(0.8, 0.89), IN_PART),
        (untrainable_verdict(0.9, 0.89), DISAGREES),
        (correlation_verdict(0.5), AGREES),
        (correlation_verdict(0.15), IN_PART), (correlation_verdict(0.02), DISAGREES),
        (most_verdict([0.9, 0.6]), AGREES), (most_verdict([0.9, 0.4]), IN_PART), (most_verdict([0.1, 0.4]), DISAGREES),
        (selective_verdict(0.8, 0.1), AGREES), (selective_verdict(0.8, 0.7), IN_PART),
        (selective_verdict(0.3, 0.3), DISAGREES),
        (stripes_verdict({MNIST: [20, 8], CIFAR: [35, 45]}), AGREES),
        (stripes_verdict({MNIST: [46, 20], CIFAR: [35, 35]}), IN_PART),
        (stripes_verdict({MNIST: [46, 47], CIFAR: [10, 12]}), DISAGREES),
        (seeds_verdict([AGREES, AGREES]), AGREES), (seeds_verdict([AGREES, DISAGREES]), IN_PART),
        (seeds_verdict([AGREES, IN_PART]), IN_PART), (seeds_verdict([IN_PART, IN_PART]), IN_PART),
        (seeds_verdict([DISAGREES, DISAGREES]), DISAGREES),
        (depth_of_routing_verdict({MNIST: [9, 15], CIFAR: [25, 16]}), AGREES),
        (depth_of_routing_verdict({MNIST: [9, 16], CIFAR: [25, 25]}), IN_PART),
        (depth_of_routing_verdict({MNIST: [20, 16], CIFAR: [9, 15]}), DISAGREES),
        (idle_verdict(0.6), AGREES), (idle_verdict(0.4), IN_PART), (idle_verdict(0.1), DISAGREES),
        (first_layers_verdict(0.95), AGREES), (first_layers_verdict(0.6), IN_PART),
        (first_layers_verdict(0.2), DISAGREES),
        (routing_verdict([(0.9, 0.1)]), AGREES), (routing_verdict([(0.9, 0.1), (0.01, 0.01)]), IN_PART),
        (routing_verdict([(0.11, 0.1)]), DISAGREES),
    ],
)  # fmt: skip
def test_verdicts_follow_from_the_numbers(verdict: str, expected: str) -> None:
    assert verdict == expected


def test_the_deepest_trained_network_ends_at_the_first_that_does_not_train() -> None:
    assert deepest_trained({5: LOW, 10: LOW, 20: HIGH, 30: LOW}) == 10
    assert deepest_trained({5: math.inf, 10: LOW}) == 0


def test_an_interval_of_a_share_holds_it_and_narrows() -> None:
    low, high = wilson_interval(8, 10)
    assert low < 0.8 < high
    assert wilson_interval(800, 1000)[0] > low
    assert wilson_interval(0, 0) == (0.0, 1.0)


def curve(loss: float, seed: int = 0, status: str = "trained", **labels: object) -> ClaimCurve:
    return ClaimCurve(labels, seed, status, (EpochMetrics(1, train_loss=loss, test_accuracy=0.5, seconds=1.0),))  # type: ignore[arg-type]


def test_networks_are_compared_at_their_best_learning_rate_over_all_seeds() -> None:
    curves = [curve(0.1, depth=5, rate=1), curve(0.5, 1, depth=5, rate=1), curve(0.2, depth=5, rate=2)]
    curves += [curve(0.2, 1, depth=5, rate=2), curve(0.3, status="diverged", depth=9, rate=1)]
    assert best_losses(curves, "depth") == {(5,): 0.2, (9,): math.inf}
    assert [each.seed for each in by_label(curves, "depth")[5,]] == [0, 1]


def trained(tmp_path: Path) -> ClaimResult:
    """The results of an experiment whose trainings are all made up."""
    result = ClaimResult(tmp_path, FORMS, quick=True)
    for name, seed in result.missing():
        assert result.add(name, seed, "trained", curve(LOW).metrics, MACHINE)
    return result


def test_results_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    result = trained(tmp_path)
    result.write()
    before = result.file.read_bytes()
    again = ClaimResult(tmp_path, FORMS, quick=True)
    assert again.is_complete
    assert again.curves == result.curves
    assert [found.verdict for found in again.conclusions()] == [AGREES]
    again.write()  # nothing new, not even a date
    assert result.file.read_bytes() == before
    values = json.loads(before)
    assert values["environments"] == [MACHINE]
    assert {"date", "config", "command", "seconds", "conclusions"} <= values.keys()


def test_what_is_measured_without_a_study_is_measured_once(tmp_path: Path) -> None:
    calls = []

    def measure(quick: bool, report: Report) -> dict[str, object]:
        calls.append(quick)
        report(1.0)
        return {"accuracy": {0: {128: 1.0}}}

    experiment = replace(PARITY, measure=measure)
    result = ClaimResult(tmp_path, experiment, quick=True)
    assert not result.is_complete
    assert [found.verdict for found in result.conclusions()] == [None]
    result.measure()
    before = result.file.read_bytes()
    again = ClaimResult(tmp_path, experiment, quick=True)
    again.measure()
    again.write()
    assert calls == [True]
    assert again.conclusions() == result.conclusions()
    assert again.conclusions()[0].verdict == AGREES
    assert result.file.read_bytes() == before
    result.file.write_text(json.dumps(json.loads(before) | {"measurement": {"numbers": 3}}))
    with pytest.raises(UserError, match="damaged"):
        result.read()


def test_a_loss_that_is_not_finite_is_stored_as_null(tmp_path: Path) -> None:
    result = ClaimResult(tmp_path, FORMS, quick=True)
    for name, seed in result.missing():
        result.add(name, seed, "diverged", curve(math.inf).metrics, MACHINE)
    result.write()
    assert "Infinity" not in result.file.read_text()
    assert ClaimResult(tmp_path, FORMS, quick=True).conclusions()[0].verdict == DISAGREES


def test_an_experiment_with_missing_trainings_has_no_verdict(tmp_path: Path) -> None:
    result = ClaimResult(tmp_path, FORMS, quick=True)
    result.write()
    assert not result.file.exists()
    name, seed = result.missing()[0]
    result.add(name, seed, "trained", curve(LOW).metrics, MACHINE)
    assert not result.add(name, seed, "trained", curve(HIGH).metrics, MACHINE)  # the first result counts
    assert result.conclusions()[0] == Conclusion(f"1 of {result.total} trainings")
    line = ClaimLine(FORMS, FORMS.statements[0], result.conclusions()[0])
    assert line.verdict == f"not yet measured (1 of {result.total} trainings)"
    assert count_verdicts([line])["not yet measured"] == 1


def test_results_of_other_settings_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    result = trained(tmp_path)
    result.write()
    values = json.loads(result.file.read_text())
    values["config"]["batch_size"] += 1
    result.file.write_text(json.dumps(values))
    with pytest.raises(UserError, match="measured with other settings"):
        result.read()
    damages: tuple[dict[str, object], ...] = (
        {"trainings": 3},
        {"environments": 3},
        {"trainings": [3]},
        {"trainings": [{}]},
    )
    for damage in damages:
        result.file.write_text(json.dumps(values | damage))
        with pytest.raises(UserError, match="damaged"):
            result.read()


def test_experiments_and_their_trainings_have_distinct_names() -> None:
    assert len({each.name for each in EXPERIMENTS}) == len(EXPERIMENTS)
    for each in EXPERIMENTS:
        trainings = each.trainings(True)
        assert len({training.name for training in trainings}) == len(trainings)
        assert all(training.config.data.source == "digits" for training in trainings)


def test_unknown_experiments_are_refused_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert [each.name for each in selected_experiments("skips, init")] == ["init", "skips"]
    for arguments, words in (
        (["--only", "inti"], "did you mean 'init'?"),
        (["--seeds", "2"], "does not apply to claims"),
    ):
        assert main(["reproduce", "claims", *arguments]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def test_the_page_names_every_statement_and_its_verdict(tmp_path: Path) -> None:
    result = trained(tmp_path)
    doubted = replace(FORMS, statements=(replace(FORMS.statements[0], thought="We think so."),))
    result.experiment = replace(doubted, conclude=lambda evidence: [Conclusion("a number", DISAGREES)])
    page = claims_page([result], {"forms": tmp_path / "claims" / "forms.png"}, tmp_path)
    assert "disagree with 1; 0 are not yet measured" in page
    assert f"| 2 | {FORMS.statements[0].text} | a number | disagrees | forms |" in page
    assert "We think so." in page
    assert "](claims/forms.png)" in page
    assert "`verydeep reproduce claims --only NAME`" in page


def test_statements_about_figure_1_rest_on_its_results() -> None:
    experiment = next(each for each in EXPERIMENTS if each.name == "optimisation")
    found = experiment.conclude(Evidence((), ROOT / "results"))
    losses = {row.network: row.best for row in read_fig1(ROOT / "results" / "fig1")}
    assert f"{losses['plain-20']:.2g}" in found[0].measured
    assert all(each.verdict for each in found)


def examined(**changes: object) -> dict[str, object]:
    """The numbers of a network that does what the paper says."""
    numbers: dict[str, object] = {
        "status": "finished",
        "biases_fell": 0.9,
        "bias_with_depth": 0.5,
        "activity_with_bias": -0.5,
        "active_on_average": 0.8,
        "active_per_sample": 0.2,
        "stripes_begin": 40,
        "idle_alone": 0.8,
        "idle_together": 0.6,
        "probe_accuracy": 0.9,
        "probe_chance": 0.1,
        "significant": 0.5,
        "first_layers": 40,
        "first_layers_that_matter": 40,
        "mean_bias_change": [0.01 * layer - 0.3 for layer in range(49)],
        "mean_activity": [0.5 - 0.01 * layer for layer in range(49)],
        "class_difference": [1.0] * 49,
    }
    return numbers | changes


def inside_verdicts(mnist: dict[str, object], *cifar: dict[str, object]) -> list[Verdict | None]:
    """The verdicts on a network of MNIST and some of CIFAR-100 that do what the paper says, except for some numbers."""
    first = examined(stripes_begin=15, class_difference=[1.0, *[0.0] * 48]) | mnist
    networks = {MNIST: {"0": first}, CIFAR: {str(seed): examined(**each) for seed, each in enumerate(cifar)}}
    measured = {name: {"networks": each} for name, each in networks.items()}
    return [each.verdict for each in INSIDE.conclude(Evidence((), ROOT, measured))]


def test_a_statement_about_figures_2_to_4_agrees_if_it_does_for_every_seed() -> None:
    count = len(INSIDE.statements)
    opposite: dict[str, object] = {
        "biases_fell": 0.1,
        "bias_with_depth": -0.5,
        "mean_activity": [0.5] * 49,
        "active_on_average": 0.1,
        "active_per_sample": 0.1,
        "stripes_begin": 1,
        "probe_accuracy": 0.1,
        "first_layers_that_matter": 0,
        "class_difference": [1.0, *[0.0] * 48],
    }
    assert inside_verdicts({}, {}, {}) == [AGREES] * count
    idle = [statement.text for statement in INSIDE.statements].index(
        "About 60 % of the layers for MNIST contribute nothing."
    )
    assert inside_verdicts({}, {}, opposite) == [IN_PART if number != idle else AGREES for number in range(count)]
    other = opposite | {"stripes_begin": 49, "class_difference": [1.0] * 49, "idle_together": 0.1}
    assert inside_verdicts(other, opposite) == [DISAGREES] * count


def test_networks_that_diverged_are_named_and_do_not_count() -> None:
    measured = {name: {"networks": {"0": examined(), "1": {"status": "diverged"}}} for name in (MNIST, CIFAR)}
    found = INSIDE.conclude(Evidence((), ROOT, measured))
    assert found[0].verdict == AGREES
    assert "(diverged: MNIST, seed 1; CIFAR-100, seed 1)" in found[0].measured
    measured[CIFAR]["networks"].pop("0")
    assert {each.verdict for each in INSIDE.conclude(Evidence((), ROOT, measured))} == {None}


def test_a_correlation_with_a_constant_is_0() -> None:
    assert correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)
    assert correlation([1.0, 2.0], [3.0, 3.0]) == correlation([0.0, 0.0], [1.0, 2.0]) == 0.0


def test_half_of_a_sum_is_within_the_first_layers_that_reach_it() -> None:
    assert half_within([1.0] * 49) == 25
    assert half_within([3.0, 1.0, 1.0]) == 1
    assert half_within([0.0, 0.0, 2.0]) == 3


def test_the_tanh_settings_of_figure_1_are_kept_and_filled_up_to_100() -> None:
    mnist, cifar = SEARCHES
    trials = Fig1Results(ROOT / "results" / "fig1", Fig1Network("highway", 50), HALVING).trials
    tanh = {number: trial for number, trial in trials.items() if trial.settings["model.activation"] == "tanh"}
    assert mnist.known(ROOT / "results") == tanh
    assert 0 < len(tanh) < len(trials) == 100
    settings = [mnist.settings(number) for number in mnist.group.numbers]
    assert len(settings) == 100
    assert {each["model.activation"] for each in settings} == {"tanh"}
    for number, trial in trials.items():  # those with relu have the same values otherwise
        assert settings[number] == trial.settings | {"model.activation": "tanh"}
    assert settings == [cifar.settings(number) for number in cifar.group.numbers]
    assert not cifar.known(ROOT / "results")
    assert mnist.group.config.model.activation == "tanh"
    assert replace(cifar.group.config, data=mnist.group.config.data, epochs=100) == mnist.group.config


def test_the_best_setting_is_trained_with_every_seed() -> None:
    search: TanhSearch = SEARCHES[1]
    group = search.best_group(78)
    assert group.name == "cifar-100-best-0078"
    assert group.seeds == (0, 1, 2)
    assert group.config.optim.lr == search.settings(78)["optim.lr"]
    assert group.config.model.gate_bias == search.settings(78)["model.gate_bias"]
    assert group.config.epochs == search.protocol.epochs


def test_without_results_there_are_no_verdicts(tmp_path: Path) -> None:
    for experiment in EXPERIMENTS:
        found = ClaimResult(tmp_path, experiment, quick=False).conclusions()
        assert [each.verdict for each in found] == [None] * len(experiment.statements)


def test_the_page_in_the_repository_is_that_of_its_results() -> None:
    results = [ClaimResult(ROOT / "results", each, quick=False) for each in EXPERIMENTS]
    files = {each.experiment.name: each.file.with_suffix(".png") for each in results}
    pictures = {name: file for name, file in files.items() if file.exists()}
    assert (ROOT / "docs" / "claims.md").read_text() == claims_page(results, pictures, ROOT / "docs")


@pytest.mark.slow
def test_three_experiments_are_trained_drawn_and_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "claims", "--quick", "--only", "forms,gate-bias,supervision", "--results", str(tmp_path)]
    assert main([*command, "--jobs", "1", "--minutes", "0"]) == 0
    assert not (tmp_path / "claims" / "forms.json").exists()
    assert main([*command, "--jobs", "1"]) == 0
    files = {name: tmp_path / "claims" / f"{name}.json" for name in ("forms", "gate-bias", "supervision")}
    for file in files.values():
        values = json.loads(file.read_text())
        assert values["conclusions"][0]["verdict"] in (AGREES, IN_PART, DISAGREES)
        assert values["environments"][0]["verydeep"]
        assert "digits" in json.dumps(values["config"])
    assert (tmp_path / "claims" / "gate-bias.png").stat().st_size > 10_000
    assert "not yet measured" in (tmp_path / "claims.md").read_text()  # the others
    before = {name: file.read_bytes() for name, file in files.items()}
    capsys.readouterr()
    assert main([*command, "--jobs", "1"]) == 0  # nothing is trained again
    assert before == {name: file.read_bytes() for name, file in files.items()}


@pytest.mark.slow
def test_networks_of_figures_2_to_4_are_searched_examined_and_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["reproduce", "claims", "--quick", "--only", "inside", "--results", str(tmp_path), "--jobs", "1"]
    assert main([*command, "--minutes", "0"]) == 0
    assert not (tmp_path / "claims" / "inside.json").exists()
    assert main(command) == 0
    file = tmp_path / "claims" / "inside.json"
    before = file.read_bytes()
    values = json.loads(before)
    numbers = values["measurement"]["numbers"]
    assert values["environments"][0]["verydeep"]
    for name in (MNIST, CIFAR):
        found = numbers[name]
        losses = {each["number"]: each["train_loss"] for each in found["searched"]}
        assert found["best"]["train_loss"] == min(losses.values()) == losses[found["best"]["number"]]
        assert list(found["networks"]) == ["0", "1"]
        assert all(len(each["class_difference"]) == 9 for each in found["networks"].values())
    assert all(each["verdict"] in (AGREES, IN_PART, DISAGREES) for each in values["conclusions"])
    assert (tmp_path / "claims" / "inside.png").stat().st_size > 10_000
    file.unlink()  # the study and what it has examined are still there
    examined_at = [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("runs/**/inside.json"))]
    assert main(command) == 0
    assert json.loads(file.read_bytes())["measurement"] == values["measurement"]
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("runs/**/inside.json"))] == examined_at
    assert len(examined_at) == 4
    assert main(command) == 0
    assert "claims-inside" in {path.name for path in (tmp_path / "runs").iterdir()}
    capsys.readouterr()
