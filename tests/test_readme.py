"""The numbers that the README and the pages it links to state were measured; `documentation/` runs the examples."""

import json
import re
from pathlib import Path

import pytest
from alternatives import alternatives_page
from own_problems import own_problems_page

from verydeep.paper import EXPERIMENTS
from verydeep.paper.claims._results import ClaimResult

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MEASUREMENTS = (ROOT / "docs" / "measurements.md").read_text()
WHEN_TO_USE = (ROOT / "docs" / "when-to-use.md").read_text()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_speed_that_is_claimed_was_measured(threads: int) -> None:
    file = ROOT / "results" / "bench" / "cases" / f"train-highway-d50-w50-b100-t{threads}.json"
    times = json.loads(file.read_text())["times"]
    ratios = {name: f"{times[name]['ratio']:.1f}" for name in ("eager", "compiled", "jax")}
    (line,) = re.findall(r"A training step of the 50-layer.*?\n\n", README, flags=re.S)
    text = " ".join(line.split())
    if threads == 1:
        assert f"takes {times['ours']['min_ms']:.1f} ms on one CPU thread" in text
        assert f"{ratios['eager']} times as long in eager PyTorch" in text
        assert f"{ratios['compiled']} times with `torch.compile` and {ratios['jax']} times in JAX" in text
    else:
        assert f"with two threads, {ratios['eager']}, {ratios['compiled']} and {ratios['jax']} times" in text
    for name, title in (("eager", "eager PyTorch"), ("compiled", "`torch.compile`"), ("jax", "JAX")):
        (row,) = re.findall(rf"^\| {re.escape(title)}.*$", MEASUREMENTS, flags=re.M)
        low, *_, high = times[name]["ratio_quartiles"]
        assert row.strip("| ").split(" | ")[threads] == f"{ratios[name]} ({low:.1f} to {high:.1f})"


def test_the_layers_that_are_said_to_be_idle_were_measured() -> None:
    columns = []
    for name in ("mnist", "cifar100"):
        result = json.loads((ROOT / "results" / "figures" / f"figures-{name}.json").read_text())
        last, seen = result["last_epoch"], result["analysis"]["observations"]
        usage = result["analysis"]["usage"]
        columns.append(
            (
                f"{100 * last['train_accuracy']:.2f} %; {100 * last['test_accuracy']:.2f} %",
                f"{100 * seen['idle_alone']:.0f} %",
                f"{len(usage['idle'])} of {len(usage['idle']) + len(usage['kept'])}",
            )
        )
    section = MEASUREMENTS.partition("| | MNIST | CIFAR-100 |")[2].partition("\n\n")[0]
    assert [tuple(row.strip("| ").split(" | ")[1:]) for row in section.splitlines()[2:]] == list(
        zip(*columns, strict=True)
    )


def test_the_comparison_with_other_methods_was_measured() -> None:
    """If the table differs: python benchmarks/alternatives.py --page, then copy it to the page."""
    folder = ROOT / "results" / "alternatives"
    table = alternatives_page(json.loads((folder / "alternatives.json").read_text()))
    assert (folder / "alternatives.md").read_text() == table
    assert table in WHEN_TO_USE


def test_the_comparison_with_default_settings_was_measured() -> None:
    """If the table differs: python benchmarks/own_problems.py --page, then copy it to the page."""
    file = ROOT / "results" / "benchmarks" / "own-problems.json"
    result = json.loads(file.read_text())
    table = own_problems_page(result)
    assert file.with_suffix(".md").read_text() == table
    assert table in WHEN_TO_USE
    found = result["rare"]["balanced_accuracy"]
    assert sum(found["balanced"]) > sum(found["none"])


def test_the_comparison_with_plain_networks_was_measured() -> None:
    found = json.loads((ROOT / "results" / "fig1" / "table.json").read_text())["rows"]
    best = {row["network"]: row for row in found}
    ratios = [best[f"plain-{depth}"]["best"] / best[f"highway-{depth}"]["best"] for depth in (20, 50, 100)]
    text = " ".join(WHEN_TO_USE.split())
    assert "{:,.0f} times at 20 layers, {:,.0f} times at 50, {:,.0f} times at 100".format(*ratios) in text
    assert f"{best['plain-10']['best']:.2g} against {best['highway-10']['best']:.2g}" in text
    accuracies = [f"{100 * best[name]['test_accuracy']:.2f} %" for name in ("plain-10", "highway-50")]
    assert f"{accuracies[0]} for the plain network of 10 layers and {accuracies[1]} for the highway" in text


def test_the_claims_of_the_paper_were_measured() -> None:
    found = [
        conclusion
        for experiment in EXPERIMENTS
        for conclusion in ClaimResult(ROOT / "results", experiment, quick=False).conclusions()
    ]
    verdicts = [each.verdict for each in found]
    agrees, part, disagrees, missing = (
        verdicts.count(each) for each in ("agrees", "differs in part", "disagrees", None)
    )
    text = " ".join(README.split())
    counts = f"agree with {agrees} of {len(found)} claims, differ in part from {part}, and disagree with {disagrees}"
    assert counts + (f"; {missing} are not yet measured" if missing else ".") in text
    trained = {
        name: json.loads((ROOT / "results" / "claims" / f"{name}.json").read_text())["conclusions"][0]["numbers"]
        for name in ("activation", "init")
    }
    highway, plain = (
        [(numbers["trained"][network][-1], numbers["variants"]) for numbers in trained.values()]
        for network in ("highway-mlp", "plain-mlp")
    )
    activations, weights = ("{} of {}".format(*each) for each in highway)
    assert f"{activations} activation functions and {weights} distributions" in text
    assert "plain networks with {} and {}.".format(*(count for count, _ in plain)) in text
    file = ROOT / "results" / "claims" / "very-deep.json"
    losses = [each["loss"][-1] for each in json.loads(file.read_text())["conclusions"][0]["numbers"].values()]
    assert f"a training loss of {min(losses):.2f} to {max(losses):.2f}" in text
    expected = {"gate-bias": "agrees", "skips": "agrees", "supervision": "disagrees", "depth": "differs in part"}
    for experiment in EXPERIMENTS:
        if experiment.name in expected:
            (conclusion,) = ClaimResult(ROOT / "results", experiment, quick=False).conclusions()
            assert conclusion.verdict == expected[experiment.name]
