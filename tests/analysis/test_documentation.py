"""What the guide to the analysis says can be done."""

import json
import re
from pathlib import Path

import verydeep.analysis

ROOT = Path(__file__).parents[2]
GUIDE = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("analysis", "layers-used"))


def test_the_guide_names_files_that_are_written_and_options_that_exist() -> None:
    from verydeep.analysis._saving import _FILES
    from verydeep.cli.commands._analyze import AnalyzeOptions
    from verydeep.cli.commands._prune import PruneOptions

    assert {f"{name}.npz" for name in _FILES} <= set(re.findall(r"[a-z]+\.npz", GUIDE))
    options = {
        name.replace("_", "-")
        for command in (AnalyzeOptions, PruneOptions)
        for name in vars(command)["__annotations__"]
    }
    text = re.sub(r"^verydeep train .*$", "", GUIDE, flags=re.M)
    assert set(re.findall(r"--([a-z][a-z-]*)", text)) <= options


def test_every_public_name_is_there() -> None:
    assert all(hasattr(verydeep.analysis, name) for name in verydeep.analysis.__all__)


def test_the_page_of_residual_networks_has_the_measured_numbers() -> None:
    page = (ROOT / "docs" / "residual-results.md").read_text()
    gpt2 = json.loads((ROOT / "results" / "gpt2_layers.json").read_text())
    layers = sorted(row["perplexity"] for row in gpt2["layers"])
    random = sorted(row["perplexity"] for row in gpt2["random_halves"])
    halves = [half["perplexity"] for half in gpt2["halves"].values()]
    for value in (gpt2["whole"]["perplexity"], layers[0], layers[-2], *halves, random[0]):
        assert f"{value:.1f}" in page
    for count in (layers[-1], random[-1], gpt2["training"]["steps"]):
        assert f"{count:,.0f}" in page
    sentences = json.loads((ROOT / "results" / "sentence_encoder_layers.json").read_text())
    for accuracy in (sentences["accuracy"], *(sentences["layers"][layer]["accuracy"] for layer in (0, 2, 3, 5))):
        assert f"{accuracy:.0%}".replace("%", " %") in page
    resnets = (ROOT / "results" / "resnet_against_highway.md").read_text()
    for name in ("resnet-20", "highway-20", "resnet-56", "highway-56"):
        (row,) = re.findall(rf"^\| {name} .*$", resnets, flags=re.M)
        whole, _, worst, half, random, _ = re.findall(r"[\d.]+%", row)
        for error in (whole, worst, half, random):
            assert error.replace("%", " %") in page
