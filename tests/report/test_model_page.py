"""The page about a network that is not a run."""

from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from verydeep.analysis import Block, Findings, FoundBlocks, RefusedBlock, Score
from verydeep.errors import UserError
from verydeep.report import write_model_report

from . import _made_up as made_up
from .test_html import read

BLOCKS = FoundBlocks(
    [Block(name, "residual", (2, 4)) for name in made_up.names()],
    [RefusedBlock("wider", "shape", "'wider' cannot be closed: it turns (2, 4) into (2, 8)")],
)


@pytest.fixture
def findings() -> Findings:
    return replace(made_up.findings(), gates=None, routing=None, prune=None)


def test_the_page_of_a_residual_network_has_its_sections_and_words(findings: Findings, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    steps = [("verydeep analyze --pairs", "closes pairs.")]
    model = nn.Linear(4, 2)
    write_model_report(
        findings, page, "mine", model=model, blocks=BLOCKS, next_steps=steps, command="make", removal="prune(x)"
    )
    found = read(page)
    sections = [section["id"] for section in found.all("section")]
    assert sections == ["lesions", "refused", "depth", "flow", "layers", "made", "glossary"]
    assert {f"#{section}" for section in sections} <= {link["href"] for link in found.all("a")}
    assert "This network needs 2 of its 6 residual blocks: the other 4 are idle." in found.text
    assert "1 block cannot be closed (the output has another shape than the input): wider." in found.text
    assert "'wider' cannot be closed: it turns (2, 4) into (2, 8)" in found.text
    for words in ("verydeep analyze --pairs", "closes pairs.", "prune(x)", "Two layers at a time"):
        assert words in found.text
    for words in ("highway layer", "transform gate", "The paper:"):
        assert words not in found.text


def test_a_language_model_shows_its_perplexity(findings: Findings, tmp_path: Path) -> None:
    assert findings.lesions is not None
    assert findings.usage is not None
    lesions = replace(findings.lesions, baseline=Score(0.05, 0.02, "token_accuracy"))
    usage = replace(findings.usage, greedy=replace(findings.usage.greedy, measure="token_accuracy"))
    write_model_report(Findings(lesions=lesions, usage=usage), tmp_path / "page.html")
    found = read(tmp_path / "page.html")
    assert {"lesion-perplexity", "usage-perplexity"} <= found.data["charts"].keys()
    assert found.data["charts"]["usage"]["percent"]
    assert "Perplexity against layers kept" in found.text


def test_results_of_different_networks_are_refused(findings: Findings, tmp_path: Path) -> None:
    assert findings.lesions is not None
    shorter = replace(findings.lesions, layers=("a", "b"))
    with pytest.raises(UserError, match="different numbers of layers"):
        write_model_report(replace(findings, lesions=shorter), tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
