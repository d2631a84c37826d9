"""The page about depth: complete, alone, safe with any name, and readable in a browser."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from verydeep.cli._options import given_options, settings_of
from verydeep.depth import DepthAnswer
from verydeep.report import write_depth_page
from verydeep.report.figures._depth_layout import brief_score
from verydeep.report.html._charts import _digits, _tick
from verydeep.report.html._depth_charts import depth_charts
from verydeep.report.html._depth_commands import hand_commands, next_commands
from verydeep.report.html._depth_sentences import compare_models, headline, method_sentences, used_sentences
from verydeep.report.html._depth_tables import model_rows, point_table

from . import _made_up_depth as made_up
from .test_browser import CHROMIUM, Opened, contrast, needs_chromium
from .test_html import Reader, read

CONTRAST = """() => { const all = [];
  for (const e of document.querySelectorAll('p, dt, dd, th, td, a, li, figcaption, span, h1, h2, code')) {
    let b = e;
    while (getComputedStyle(b).backgroundColor === 'rgba(0, 0, 0, 0)' && b.parentElement) b = b.parentElement;
    all.push([getComputedStyle(e).color, getComputedStyle(b).backgroundColor]); } return all; }"""


@pytest.fixture
def written(page: Path) -> Callable[[DepthAnswer], Reader]:
    def write(answer: DepthAnswer) -> Reader:
        write_depth_page(answer, page)
        return read(page)

    return write


Written = Callable[[DepthAnswer], Reader]


def sections(found: Reader) -> list[str | None]:
    return [section["id"] for section in found.all("section")]


def test_the_page_has_every_section_in_order_and_says_the_answer(written: Written) -> None:
    answer = made_up.answer()
    found = written(answer)
    assert sections(found) == ["next", "use", "used", "deepest", "all", "method", "hand"]
    assert {f"#{section}" for section in sections(found)} <= {link["href"] for link in found.all("a")}
    assert answer.sentence in found.text
    assert answer.disagreement in found.text
    assert "2 layers are enough" in found.text
    assert "verydeep predict runs/depth-digits/network NEW.csv -o predictions.csv" in found.text
    assert "highway networks reach accuracy 97.40%" in found.text
    assert "3 of 5 seeds diverged" in found.text


def test_the_page_links_to_the_explorer_only_if_it_exists(written: Written, page: Path) -> None:
    assert "verydeep explore runs/depth-digits/network" in written(made_up.answer()).text
    explorer = page.parent / "network" / "explore.html"
    explorer.parent.mkdir()
    explorer.touch()
    links = [str(link["href"]) for link in written(made_up.answer()).all("a")]
    assert [link for link in links if not link.startswith("#")] == ["network/explore.html"]


@pytest.mark.parametrize("make", made_up.EVERY.values(), ids=made_up.EVERY)
def test_every_answer_makes_a_page_that_needs_nothing_else(make: Callable[[], DepthAnswer], written: Written) -> None:
    found = written(make())
    assert all(str(link["href"]).startswith("#") for link in found.all("a"))
    assert found.all("img") == found.all("iframe") == []
    assert [script.get("type") for script in found.all("script")] == ["application/json", None]
    policy = next(meta for meta in found.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert str(policy["content"]).startswith("default-src 'none'")
    assert {f"#{section}" for section in sections(found)} <= {link["href"] for link in found.all("a")}


def test_names_are_text_and_commands_are_one_word_per_argument(written: Written, page: Path) -> None:
    answer = made_up.hostile()
    found = written(answer)
    assert made_up.EVIL in found.text
    assert made_up.EVIL not in page.read_text()
    command = hand_commands(answer)[0].line
    words = shlex.split(command)
    assert words[:5] == ["verydeep", "train", answer.source, "--target", made_up.EVIL]
    assert shlex.split(next_commands(answer, Path())[2].line) == [
        "verydeep", "report", f"{answer.folder}/network",
    ]  # fmt: skip


def test_the_charts_hold_the_scores_and_their_intervals(written: Written) -> None:
    answer = made_up.answer()
    chart = written(answer).data["charts"]["score"]
    highway = next(series for series in chart["series"] if series["name"] == "highway networks")
    for point in answer.curve("highway"):
        place = chart["x"].index(point.depth)
        assert (highway["values"][place], highway["low"][place], highway["high"][place]) == (
            point.score, point.score_low, point.score_high,
        )  # fmt: skip
    assert highway["values"][chart["x"].index(23)] is None
    assert all(left < right for left, right in pairwise(chart["across"]))


def test_an_answer_of_nothing_learned_recommends_nothing(written: Written) -> None:
    found = written(made_up.nothing_learned())
    assert sections(found) == ["use", "all", "method", "hand"]
    assert "No answer no network learned anything" in found.text
    assert "predict" not in found.text


def test_the_smallest_answer_has_what_there_is(written: Written) -> None:
    found = written(made_up.smallest())
    assert sections(found) == ["all", "method"]
    assert "There is no interval" in found.text


def test_headlines() -> None:
    answer = made_up.answer()
    assert headline(answer) == ("2 layers", "are enough")
    assert headline(replace(answer, depth=1)) == ("1 layer", "is enough")
    assert headline(replace(answer, depth=0)) == ("0 layers", "a linear model is enough")
    assert headline(replace(answer, kind="plain")) == ("2 plain layers", "are enough")
    assert headline(made_up.convolutional()) == ("12 layers", "per stage are enough")


def test_a_better_model_is_recommended_and_overlapping_intervals_are_not_a_difference() -> None:
    linear, boosting = compare_models(made_up.regression())
    assert linear.endswith("the recommended network is clearly better.")
    assert boosting.endswith("clearly better than the recommended network. Use it if all you want is predictions.")
    assert all("may be chance" in sentence for sentence in compare_models(made_up.answer()))


def test_models_are_listed_with_rows_and_a_blind_guess_that_does_not_hide_the_differences() -> None:
    ours, linear, boosting, left_out, guess = model_rows(made_up.regression())
    assert ours.ours
    assert boosting.rows == "10,000 of 16,512"
    assert left_out.place is None
    assert left_out.score == ""
    assert guess.place is None  # 0 beside 0.45 to 0.83 would leave little room for them
    assert linear.place is not None
    assert ours.place is not None
    assert boosting.place is not None
    assert linear.place < ours.place < boosting.place
    assert model_rows(made_up.nothing_learned())[-1].place is not None


def test_every_network_is_a_row_with_its_settings() -> None:
    answer = made_up.answer()
    headings, rows = point_table(answer)
    assert len(rows) == len(answer.points)
    assert all(len(row) == len(headings) for row in rows)
    third = dict(zip(headings, rows[2], strict=True))
    assert third["enough?"] == "yes, the answer"
    assert (third["learning rate"], third["width"], third["gate bias"]) == ("0.1", "64", "-2.0")
    assert third["above the best"] == "0.0030 ± 0.0060"
    assert [row[headings.index("enough?")] for row in rows].count("yes, the answer") == 1


def test_the_plan_is_told_in_sentences() -> None:
    text = " ".join(method_sentences(made_up.answer()))
    assert "9 combinations of settings" in text
    assert "with 5 seeds, each time with another of 5 parts of the training data held out" in text
    assert "within one standard error of the best" in text
    assert "1,000 bootstrap draws" in text
    assert "10 minutes were asked for" in text
    counted = replace(made_up.answer(), plan=replace(made_up.answer().plan, minutes=None, total_epochs=9000))
    assert "for at most 9,000 epochs in all" in " ".join(method_sentences(counted))


@pytest.mark.parametrize("name", ["answer", "regression", "convolutional"])
def test_the_commands_are_ones_that_the_program_takes(name: str) -> None:
    answer = made_up.EVERY[name]()
    commands = [*next_commands(answer, Path()), *hand_commands(answer)]
    assert len(commands) == 9
    for command in commands:
        program, word, *arguments = shlex.split(command.line)
        assert program == "verydeep"
        options = import_module(f"verydeep.cli.commands._{word}").OPTIONS[word]
        given = given_options(settings_of(options), word, arguments)  # raises for what the command does not take
        assert word != "train" or (given["optim.lr"], given["model.gate_bias"], given["seeds"]) == (0.1, -2.0, 5)


def test_settings_that_were_left_to_the_program_are_not_given() -> None:
    answer = made_up.answer()
    points = tuple(replace(each, settings=("optim.lr=0.1", "model.gate_bias=None")) for each in answer.points)
    assert "--gate-bias" not in hand_commands(replace(answer, points=points))[0].line


def test_what_was_shortened_and_a_fixed_width_are_part_of_the_method() -> None:
    answer = made_up.answer()
    plan = replace(answer.plan, widths=(4,), revision="The rest was shortened.")
    text = " ".join(method_sentences(replace(answer, plan=plan)))
    assert "(learning rate, gate bias and others, at width 4)" in text
    assert "The rest was shortened." in text


def test_layers_used_that_vary_too_much_to_contradict_the_answer_say_so() -> None:
    answer = made_up.answer()
    assert answer.used is not None
    wide = replace(answer, depth=2, interval=(2, 4), used=replace(answer.used, used=24, interval=(2, 50)))
    assert wide.disagreement == ""
    assert any("the two intervals overlap" in sentence for sentence in used_sentences(wide))
    agreeing = replace(wide, used=replace(answer.used, used=3, interval=(2, 5)))
    assert not any("overlap" in sentence for sentence in used_sentences(agreeing))
    input_layer = replace(wide, depth=0, interval=(0, 0), used=replace(answer.used, used=1, interval=(1, 1)))
    assert not any("overlap" in sentence for sentence in used_sentences(input_layer))


def test_costs_are_bars_with_their_errors() -> None:
    answer = made_up.answer()
    assert answer.used is not None
    chart = depth_charts(answer)["cost"]
    series = chart.series[0]
    assert tuple(series.values) == answer.used.cost
    assert len(chart.boxes(series)) == len(chart.whiskers(series)) == 49
    assert chart.band(series) == ""
    x, low, high = chart.whiskers(series)[0]
    assert high < chart.boxes(series)[0][1] < low  # positions count downwards
    assert x == chart.x_position(1)


def test_values_below_the_axis_are_triangles_at_its_end() -> None:
    chart = depth_charts(made_up.regression())["score"]
    plain = next(series for series in chart.series if series.name == "plain networks")
    assert chart.triangles(plain) == [(chart.x_position(32), chart.bottom)]
    assert (chart.x_position(32), chart.bottom) not in chart.dots(plain)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, make in made_up.EVERY.items():
        write_depth_page(make(), folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made_up.EVERY}


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("width", [320, 390, 768, 1520])
def test_every_page_opens_without_errors_and_without_scrolling_sideways(
    browser: Browser, pages: dict[str, Path], width: int
) -> None:
    for name, path in pages.items():
        opened = Opened(browser, path, viewport={"width": width, "height": 800})
        assert opened.problems == [], name
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert opened.page.title().endswith(": how deep must a network be?")
        opened.page.context.close()


@pytest.mark.slow
@needs_chromium
def test_pointing_at_a_depth_says_its_scores(browser: Browser, pages: dict[str, Path]) -> None:
    answer = made_up.answer()
    for chart, width in (("score", 1520), ("score-narrow", 390)):
        opened = Opened(browser, pages["answer"], viewport={"width": width, "height": 800})
        svg = opened.page.locator(f"svg[data-chart={chart}]")
        readout = svg.locator("xpath=following-sibling::p[1]")
        box = svg.bounding_box()
        assert box is not None
        drawn = depth_charts(answer)[chart]
        svg.hover(position={"x": drawn.x_position(16) / drawn.width * box["width"], "y": 60})
        said = readout.inner_text()
        assert said.startswith("depth (hidden layers) 16: highway networks 97.5% (97.1% to 97.9%)")
        assert "plain networks 93% (92.6% to 93.4%)" in said
        svg.focus()
        opened.page.mouse.move(2, 2)
        opened.page.keyboard.press("End")
        assert "depth (hidden layers) 50" in readout.inner_text()
        opened.page.context.close()


@pytest.mark.slow
@needs_chromium
def test_only_one_chart_of_the_scores_is_shown(browser: Browser, pages: dict[str, Path]) -> None:
    for width, shown in ((390, ["score-narrow"]), (1520, ["score"])):
        opened = Opened(browser, pages["answer"], viewport={"width": width, "height": 800})
        charts = opened.page.locator("svg[data-chart^=score]").all()
        assert [chart.get_attribute("data-chart") for chart in charts if chart.is_visible()] == shown
        opened.page.context.close()


@pytest.mark.slow
@needs_chromium
def test_the_answer_and_its_chart_fit_into_the_first_screen(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["answer"], viewport={"width": 1520, "height": 760})
    box = opened.page.locator(".hero").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 760
    opened.page.context.close()


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(browser: Browser, pages: dict[str, Path], scheme: Any) -> None:
    opened = Opened(browser, pages["regression"], color_scheme=scheme)
    assert min(contrast(*pair) for pair in {tuple(pair) for pair in opened.page.evaluate(CONTRAST)}) >= 4.5
    opened.page.context.close()


@pytest.mark.slow
@needs_chromium
def test_labels_of_the_charts_do_not_overlap(browser: Browser, pages: dict[str, Path]) -> None:
    script = """id => [...document.querySelectorAll(`svg[data-chart=${id}] text`)]
      .filter(t => !t.classList.contains('aside')).map(t => t.getBoundingClientRect())
      .filter(b => b.width).map(b => [b.left, b.top, b.right, b.bottom])"""
    for name in ("answer", "regression", "many_depths", "hostile"):
        opened = Opened(browser, pages[name], viewport={"width": 1520, "height": 760})
        boxes = opened.page.evaluate(script, "score")
        for first, box in enumerate(boxes):
            for other in boxes[:first]:
                apart = box[0] >= other[2] or other[0] >= box[2] or box[1] >= other[3] - 3 or other[1] >= box[3] - 3
                assert apart, (name, box, other)
        opened.page.context.close()


def test_ticks_are_labelled_exactly() -> None:
    assert [_digits(step) for step in (0.0015, 0.002, 0.25, 0.5, 2.0, 2.5, 1 / 3)] == [4, 3, 2, 1, 0, 1, 1]


def test_large_numbers_have_short_labels() -> None:
    assert _tick(-9e6, 0) == "-9e6"
    assert _tick(-1.2e12, 0) == "-1.2e12"
    assert brief_score("r2", -4.4e6) == "−4.4e6"


def test_images_are_predicted_from_a_folder() -> None:
    assert next_commands(made_up.convolutional(), Path())[0].line.endswith("NEW_FOLDER -o predictions.csv")
    assert next_commands(made_up.answer(), Path())[0].line.endswith("NEW.csv -o predictions.csv")


def test_notes_are_shown_beside_the_answer(tmp_path: Path) -> None:
    write_depth_page(replace(made_up.answer(), notes=("Nothing <b>deeper</b>",)), tmp_path / "page.html")
    assert '<p class="note">Nothing &lt;b&gt;deeper&lt;/b&gt;</p>' in (tmp_path / "page.html").read_text()


def test_a_linear_answer_of_images_is_trained_as_a_linear_model() -> None:
    images = replace(made_up.answer(), unit="layers per stage", depth=0, kind="highway")
    line = next(each.line for each in hand_commands(images) if "runs/enough" in each.line)
    assert "--model highway-mlp --depth 0" in line


def test_equal_scores_are_called_equal() -> None:
    answer = made_up.answer()
    assert answer.network is not None
    score = answer.network.test_score
    same = replace(answer, others=tuple(replace(other, score=score) for other in answer.others))
    assert all("as much as the recommended network" in sentence for sentence in compare_models(same))
