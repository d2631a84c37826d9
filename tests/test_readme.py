"""What the README and the pages it links to say is true: examples run, links lead somewhere, numbers are measured."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from alternatives import alternatives_page
from own_problems import own_problems_page

from verydeep.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
MEASUREMENTS = (ROOT / "docs" / "measurements.md").read_text()
WHEN_TO_USE = (ROOT / "docs" / "when-to-use.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands() -> list[list[str]]:
    """The commands in the README, as lists of words, without `verydeep`."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.S | re.M)
    lines = "".join(text for language, text in blocks if not language).splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("verydeep ")]


@pytest.mark.slow
def test_the_examples_of_the_readme_run_in_an_empty_folder(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    own_data = [words for words in commands() if any("wine" in word for word in words)]
    assert len(examples) == 3
    assert [words[0] for words in own_data] == ["depth", "predict", "train", "eval"]
    for example in examples:
        subprocess.run([sys.executable, "-W", "error", "-c", example], check=True, cwd=tmp_path)
    for words in own_data:
        short = ["--most", "2", "--total-epochs", "900"] if words[0] == "depth" else []  # instead of ten minutes
        subprocess.run([sys.executable, "-m", "verydeep", *words, *short], check=True, cwd=tmp_path)
    assert json.loads((tmp_path / "runs" / "depth-wine" / "depth.json").read_text())["network"]["test_score"] > 0.9
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 179
    (evaluation,) = tmp_path.glob("runs/*/eval/*/evaluation.json")
    assert json.loads(evaluation.read_text())["accuracy"] > 0.9


def test_the_readme_names_commands_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    named = set(re.findall(r"make ([a-z-]+)", README))
    assert {"demo", "test"} <= named <= targets
    main(["--help"])
    exist = set(re.findall(r"^  ([a-z]+)  ", capsys.readouterr().out, flags=re.M))
    named = {words[0] for words in commands()} | set(re.findall(r"`verydeep ([a-z]+)", README))
    assert len(named) > 6
    assert named <= exist


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)|<img src=\"([^\"]+)\"", text)
    assert [link for link in links if not (page.parent / "".join(link)).exists()] == []


def test_every_page_of_the_documentation_can_be_reached_from_the_readme() -> None:
    linked = set(re.findall(r"\]\(docs/([\w-]+\.md)\)", README))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")}


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
