"""The report: complete, alone, and safe with any name."""

import base64
import json
import re
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from verydeep.analysis import Findings
from verydeep.config import from_dict
from verydeep.errors import UserError
from verydeep.report import write_report
from verydeep.report.html._sentences import about_lesions, answer
from verydeep.training import Run, TrainConfig

from . import _made_up as made_up

EVIL = '</script><script>alert("1")</script><img src=x onerror=alert(2)>&amp;\u2028"\'$x$'


class Reader(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.data: Any = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and dict(self.tags[-1][1]).get("type") == "application/json":
            self.data = json.loads(data) if data.strip() else self.data
        elif self.lasttag not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def read(path: Path) -> Reader:
    return Reader(path.read_text("utf-8"))


def array(found: dict[str, Any]) -> np.ndarray[Any, Any]:
    values = np.frombuffer(base64.b64decode(found["values"]), "<f4")
    return values.reshape(len(found["pages"]), *found["shape"])


def test_the_page_has_every_section_and_says_the_answer(trained: Run, page: Path) -> None:
    write_report(trained, page, made_up.findings())
    found = read(page)
    sections = [section["id"] for section in found.all("section")]
    assert sections == [
        "training", "gates", "routing", "lesions", "depth", "flow", "layers", "made", "glossary",
    ]  # fmt: skip
    assert {f"#{section}" for section in sections} <= {link["href"] for link in found.all("a")}
    assert "For digits, this network needs 2 of its 6 highway layers: the other 4 are idle." in found.text
    assert "Kept: layers 1–2." in found.text
    assert "accuracy, test set, after fine-tuning" in found.text
    assert "91.0% of 1,000 samples" in found.text
    assert "It finished all 3 epochs." in found.text


def test_a_network_that_needs_no_highway_layer_is_told_so() -> None:
    needless = replace(made_up.usage(), kept=(), idle=tuple(range(made_up.DEPTH)))
    assert answer(needless, "digits").startswith("For digits, this network needs none of its 6 highway layers.")


def test_lesions_that_lower_the_loss_are_not_said_to_raise_it() -> None:
    found = made_up.lesions()
    harmless = replace(found, loss=np.full(made_up.DEPTH, 0.04), error=np.full(made_up.DEPTH, 0.01))
    assert about_lesions(harmless)[0].found == "No single lesion raises the loss."
    one = replace(harmless, loss=np.array([0.06] + [0.04] * (made_up.DEPTH - 1)))
    assert about_lesions(one)[0].found == "Closing layer 1 raises the loss most."
    assert about_lesions(found)[0].found.startswith(
        "Closing layers 1, 2, 3, 4 and 5 raises the loss most, in this order."
    )


def test_a_network_that_learned_nothing_is_not_called_shallow(trained: Run, page: Path) -> None:
    hopeless = made_up.usage()
    greedy = replace(hopeless.greedy, loss=np.full(made_up.DEPTH + 1, 1.38), error=np.full(made_up.DEPTH + 1, 0.74))
    idle = replace(hopeless, greedy=greedy, kept=(), idle=greedy.order)
    write_report(trained, page, replace(made_up.findings(), usage=idle))  # a quarter are right by chance
    found = read(page).text
    assert "has learned next to nothing: its loss on the training set is 1.38, where a blind guess has 1.386" in found
    assert "0 of 6 highway layers" not in found  # no number above a sentence that disowns it


def test_low_loss_at_the_accuracy_of_the_majority_is_not_called_nothing(trained: Run, page: Path) -> None:
    useful = made_up.usage()
    greedy = replace(useful.greedy, loss=np.full(made_up.DEPTH + 1, 0.7), error=np.full(made_up.DEPTH + 1, 0.75))
    write_report(trained, page, replace(made_up.findings(), usage=replace(useful, greedy=greedy)))
    assert "next to nothing" not in read(page).text
    assert "needs 2 of its 6 highway layers" in read(page).text


def test_results_of_different_networks_are_refused(trained: Run, page: Path) -> None:
    with pytest.raises(UserError, match=r"different numbers of layers \(6 and 9\)"):
        write_report(trained, page, replace(made_up.findings(), lesions=made_up.lesions(9)))
    assert not page.exists()


def test_the_maps_hold_the_values_of_the_results_exactly(trained: Run, page: Path) -> None:
    findings = made_up.findings()
    write_report(trained, page, findings)
    maps = read(page).data["maps"]
    assert findings.gates is not None
    assert findings.routing is not None
    np.testing.assert_array_equal(array(maps["bias"])[0], np.stack(findings.gates.bias).astype("f4"))
    np.testing.assert_array_equal(array(maps["output"])[0], np.stack(findings.gates.sample_outputs).astype("f4"))
    assert maps["bias"]["start"] == -2.0
    differences = np.stack(findings.routing.difference, axis=1)
    np.testing.assert_array_equal(array(maps["routing"]), differences.astype("f4"))
    noise = np.frombuffer(base64.b64decode(maps["routing"]["noise"]), "u1").reshape(differences.shape)
    np.testing.assert_array_equal(noise, np.abs(differences) < 0.06)


def test_the_curves_hold_the_metrics_and_the_study(trained: Run, page: Path) -> None:
    write_report(trained, page, made_up.findings())
    charts = read(page).data["charts"]
    curves = {curve["name"]: curve["values"] for curve in charts["loss"]["series"]}
    assert curves["test set"] == [line.test_loss for line in trained.metrics]
    assert charts["lesion-error"]["series"][0]["values"] == made_up.lesions().error.tolist()
    assert charts["usage"]["x"] == list(range(7))
    assert charts["flow-gradient"]["series"][2]["values"][-1] == 0


def test_the_page_stands_alone(trained: Run, page: Path) -> None:
    write_report(trained, page, Findings(made_up.conv_gates()))
    found = read(page)
    addresses = [
        str(attributes[key])
        for _, attributes in found.tags
        for key in ("src", "href", "srcset", "action", "data")
        if key in attributes
    ]
    assert [address for address in addresses if not address.startswith(("#", "data:"))] == []
    style = re.search(r"<style>(.*?)</style>", page.read_text(), flags=re.S)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert len(found.all("img")) == 1  # the gates of feature maps


def test_the_report_links_to_the_explorer_only_if_it_exists(trained: Run, page: Path) -> None:
    explorer = trained.path / "explore.html"
    write_report(trained, page, made_up.findings())
    assert f"verydeep explore {trained.path}" in read(page).text
    assert [link for link in read(page).all("a") if not str(link["href"]).startswith("#")] == []
    explorer.touch()
    try:
        write_report(trained, page, made_up.findings())
    finally:
        explorer.unlink()
    (link,) = [link for link in read(page).all("a") if not str(link["href"]).startswith("#")]
    assert (page.parent / str(link["href"])).resolve() == explorer.resolve()


def test_headings_are_in_order_and_everything_to_look_at_has_words(trained: Run, page: Path) -> None:
    write_report(trained, page, made_up.findings())
    found = read(page)
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    seen = [a for tag, a in found.tags if tag in ("canvas", "svg", "img") and a.get("aria-hidden") != "true"]
    assert len(seen) >= 14
    assert all(a.get("aria-label") or a.get("alt") for a in seen)
    assert found.all("html")[0]["lang"] == "en"


def test_names_are_shown_as_they_are_and_never_run(trained: Run, page: Path) -> None:
    names = (EVIL, "dog", "emu", "fox")
    layers = (EVIL, *made_up.names()[1:])
    evil = replace(
        made_up.findings(),
        routing=made_up.routing(names),
        gates=replace(made_up.gates(), layers=layers),
        flow=tuple(replace(flow, name=f"{EVIL}, {n}") for n, flow in enumerate(made_up.flow())),
    )
    write_report(trained, page, evil, note=EVIL)
    found = read(page)
    assert len(found.all("script")) == 2
    assert found.all("img") == []
    assert found.data["maps"]["routing"]["pages"][0] == EVIL
    assert EVIL in "".join(found.words)


def test_only_our_own_script_may_run(trained: Run, page: Path) -> None:
    import hashlib

    write_report(trained, page)
    policy = next(meta["content"] for meta in read(page).all("meta") if "http-equiv" in meta)
    script = re.findall(r"<script>(.*?)</script>", page.read_text(), flags=re.S)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_without_an_analysis_the_page_is_about_training(trained: Run, page: Path) -> None:
    write_report(trained, page, note="Nobody looked.")
    found = read(page)
    assert [section["id"] for section in found.all("section")] == ["training", "made", "glossary"]
    assert "Nobody looked." in found.text
    assert found.data["maps"] == {}


@pytest.mark.parametrize("part", ["gates", "routing", "lesions", "pairs", "usage", "flow", "prune"])
def test_any_part_may_be_missing_or_alone(trained: Run, page: Path, part: str) -> None:
    empty: Any = {part: () if part == "flow" else None}
    write_report(trained, page, replace(made_up.findings(), **empty))
    write_report(trained, page, Findings(**{part: getattr(made_up.findings(), part)}))
    assert page.stat().st_size > 10_000


def test_the_configuration_on_the_page_is_the_runs(trained: Run, page: Path) -> None:
    write_report(trained, page)
    code = re.findall(r"<code>(.*?)</code>", page.read_text(), flags=re.S)
    toml = next(text for text in code if "[model]" in text).replace("&#34;", '"')
    assert from_dict(TrainConfig, tomllib.loads(toml), "page") == trained.config
    assert any("verydeep train run.toml --folder small" in text for text in code)


@pytest.mark.slow
def test_a_network_of_fifty_by_fifty_and_one_of_a_thousand_layers_stay_small(trained: Run, page: Path) -> None:
    hundred = tuple(map(str, range(100)))
    for depth, names in ((49, made_up.CLASSES), (49, hundred), (1000, hundred)):
        pairs = made_up.pairs(depth)
        found = Findings(
            made_up.gates(depth, 50), made_up.routing(names, depth, 50), made_up.lesions(depth), pairs,
            made_up.usage(depth), made_up.flow(depth),
        )  # fmt: skip
        write_report(trained, page, found)
        assert page.stat().st_size < (3e6 if depth < 100 else 6e6)
    text = read(page).text
    assert "it has 5 of 100 classes" in text
    assert "each cell is the mean over 4 layers by 4 layers of 1000 by 1000" in text


def test_cells_that_stand_for_several_are_their_mean() -> None:
    from verydeep.report.html._heat_maps import block_means

    values = np.arange(12, dtype=float).reshape(1, 3, 4)
    values[0, 2, 3] = np.nan
    np.testing.assert_array_equal(block_means(values, (2, 2))[0], [[2.5, 4.5], [8.5, 10]])


def test_a_page_that_cannot_be_written_leaves_nothing(trained: Run, tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UserError, match="not a regular file"):
        write_report(trained, tmp_path / "folder.html", made_up.findings())
    broken = replace(made_up.findings(), lesions=replace(made_up.lesions(), error=np.zeros(3)))
    with pytest.raises(ValueError, match="zip"):
        write_report(trained, tmp_path / "broken.html", broken)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]
