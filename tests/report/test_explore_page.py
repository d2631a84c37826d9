"""The interactive page in a real browser: someone clicks, draws, types and reads."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from verydeep.data import DataConfig
from verydeep.report import write_explore
from verydeep.training import ModelConfig, OptimConfig, Run, TrainConfig, train

from ._explored import COLUMNS, EVIL, table_run
from .test_browser import Opened, browser, contrast, needs_chromium

pytestmark = [pytest.mark.slow, needs_chromium]
__all__ = ["browser"]  # a fixture
Table = tuple[Path, Run, torch.Tensor]
WIDE = {"viewport": {"width": 1280, "height": 900}}


@pytest.fixture(scope="module")
def digits(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, torch.Tensor]:
    """The page about a network of four highway layers, and its samples."""
    folder = tmp_path_factory.mktemp("explore")
    run = Run.load(shutil.copytree(trained.path, folder / "run"))
    return folder / "digits.html", write_explore(run, folder / "digits.html").x


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The page about a table with hostile names, its run, and its samples."""
    folder = tmp_path_factory.mktemp("table")
    run = table_run(folder)
    return folder / "table.html", run, write_explore(run, folder / "table.html").x


class Explored(Opened):
    """An open page that has computed its first score."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        super().__init__(browser, path, reduced_motion="reduce", **(WIDE | options))
        expect(self.page.locator("#score .text")).to_contain_text("samples", timeout=20_000)

    def values(self) -> list[float]:
        """The percentages of the answer."""
        shown = self.page.locator(".bars .value").all_inner_texts()
        return [float(text.split("%")[0]) / 100 for text in shown]

    def click_layer(self, layer: int, layers: int = 4, **options: Any) -> None:
        """Click the switch of a layer, counted from 1; the first row is the plain layer."""
        canvas = self.page.locator(".switches")
        box = canvas.bounding_box()
        assert box is not None
        y = 1 + (layer + 0.5) / (layers + 1) * (box["height"] - 2)
        canvas.click(position={"x": box["width"] - 10, "y": y}, **options)


@pytest.fixture
def opened(browser: Browser, digits: tuple[Path, torch.Tensor]) -> Iterator[Explored]:
    found = Explored(browser, digits[0])
    yield found
    assert found.problems == []
    found.page.context.close()


def expect_score(page: Page, text: str) -> None:
    expect(page.locator("#score .text")).to_contain_text(text, timeout=10_000)


def probabilities(run: Run, x: torch.Tensor, closed: set[int]) -> np.ndarray:
    with torch.inference_mode():
        return np.asarray(run.model(x, closed=closed).softmax(1).numpy())


def test_it_answers_like_python_with_layers_open_and_closed(
    opened: Explored, trained: Run, digits: tuple[Path, torch.Tensor]
) -> None:
    page, x = opened.page, digits[1]
    assert opened.values() == pytest.approx(probabilities(trained, x[:1], set())[0], abs=6e-4)
    page.locator("[data-sample='7']").click()
    expect(page.locator(".preview figcaption")).to_contain_text("sample 8")
    expect(page.locator("#answer")).not_to_have_class(re.compile("busy"))
    assert opened.values() == pytest.approx(probabilities(trained, x[7:8], set())[0], abs=6e-4)
    opened.click_layer(2)
    expect_score(page, "3 of 4 layers open")
    assert opened.values() == pytest.approx(probabilities(trained, x[7:8], {1})[0], abs=6e-4)
    opened.click_layer(4, modifiers=["Shift"])
    expect_score(page, "1 of 4 layers open")
    assert opened.values() == pytest.approx(probabilities(trained, x[7:8], {1, 2, 3})[0], abs=6e-4)
    page.locator("[data-do=open]").click()
    expect_score(page, "All 4 layers are open")


def test_the_score_is_that_of_python(opened: Explored, trained: Run, digits: tuple[Path, torch.Tensor]) -> None:
    page = opened.page
    scored = page.evaluate("JSON.parse(document.getElementById('data').textContent).samples")
    counted = np.array(scored["scored"], dtype=bool)
    for closed in (set[int](), {0, 1, 2, 3}):
        right = probabilities(trained, digits[1], closed).argmax(1) == np.array(scored["targets"])
        expect(page.locator("#score .big")).to_contain_text(f"{right[counted].mean():.1%}")
        page.locator("#keep").fill("0")
        expect_score(page, "0 of 4 layers open")


def test_layers_are_closed_with_the_keyboard(opened: Explored) -> None:
    page = opened.page
    page.locator(".switches").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect_score(page, "3 of 4 layers open")
    expect(page.locator("#journey .readout")).to_contain_text("Layer 1: closed, so it copies its input")
    page.keyboard.press("End")
    page.keyboard.press("Shift+Space")
    expect_score(page, "0 of 4 layers open")
    page.keyboard.press("Enter")
    expect_score(page, "1 of 4 layers open")
    expect(page.locator("#detail h3")).to_have_text("Layer 4")


def test_many_layers_are_closed_at_once(opened: Explored) -> None:
    page = opened.page
    page.locator(".range [name=from]").fill("2")
    page.locator(".range [name=to]").fill("3")
    page.locator(".range button").click()
    expect_score(page, "2 of 4 layers open")
    page.locator("#keep").fill("3")
    expect_score(page, "3 of 4 layers open")
    expect(page.locator("#kept")).to_have_text("3 of 4")


def test_a_drawing_is_answered(opened: Explored) -> None:
    page = opened.page
    page.locator("#tab-draw").click()
    pad = page.locator(".pad canvas")
    pad.scroll_into_view_if_needed()
    box = pad.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"]
    page.mouse.move(x, y + 20)
    page.mouse.down()
    page.mouse.move(x, y + box["height"] - 20, steps=8)
    page.mouse.up()
    expect(page.locator(".preview figcaption")).to_have_text("your drawing")
    expect(page.locator(".sentence")).to_have_text(re.compile(r"^\d \(\d+%\)\.$"))
    drawn = opened.pixels(".preview canvas")
    page.locator("#panel-draw [data-do=clear]").click()
    pad.focus()
    for key in ("Space", *["ArrowRight"] * 6, *["ArrowDown"] * 6, "Space"):
        page.keyboard.press(key)
    expect(page.locator("#answer")).not_to_have_class(re.compile("busy"))
    assert opened.pixels(".preview canvas") != drawn


def test_a_line_can_be_undone_while_the_pen_of_the_keyboard_is_down(opened: Explored) -> None:
    page = opened.page
    page.locator("#tab-draw").click()
    pad = page.locator(".pad canvas")
    pad.focus()
    page.keyboard.press("Space")
    page.locator("#panel-draw [data-do=undo]").press("Enter")
    pad.focus()
    empty = opened.pixels(".pad canvas")
    page.keyboard.press("ArrowRight")  # only moves the pen
    assert opened.pixels(".pad canvas") != empty
    expect(page.locator(".pad .hint")).to_be_visible()


@pytest.mark.parametrize("button", ["undo", "clear"])
def test_without_a_drawing_the_sample_before_it_returns(opened: Explored, button: str) -> None:
    page = opened.page
    page.locator("[data-sample='7']").click()
    caption, sentence = page.locator(".preview figcaption"), page.locator(".sentence")
    expect(caption).to_contain_text("sample 8")
    expect(page.locator("#answer")).not_to_have_class(re.compile("busy"))
    before = sentence.inner_text()
    page.locator("#tab-draw").click()
    page.locator(".pad canvas").focus()
    for key in ("Space", *["ArrowDown"] * 6, "Space"):
        page.keyboard.press(key)
    expect(caption).to_have_text("your drawing")
    page.locator(f"#panel-draw [data-do={button}]").click()
    expect(caption).to_contain_text("sample 8")
    expect(sentence).to_have_text(before)


def test_a_drawing_can_be_cleared_while_a_line_is_drawn(opened: Explored) -> None:
    page = opened.page
    page.locator("#tab-draw").click()
    page.locator(".pad canvas").hover()
    page.mouse.down()
    page.keyboard.press("Delete")
    page.mouse.move(200, 700)
    page.mouse.up()
    expect(page.locator(".pad .hint")).to_be_visible()


def test_a_sample_that_is_chosen_while_a_drawing_is_answered_stays(opened: Explored) -> None:
    opened.page.evaluate("""() => {
      const pad = document.querySelector('.pad canvas');
      for (const key of [' ', 'ArrowDown', 'ArrowDown']) pad.dispatchEvent(new KeyboardEvent('keydown', { key }));
      document.querySelector('[data-sample="3"]').click(); }""")
    opened.page.wait_for_timeout(500)
    expect(opened.page.locator(".preview figcaption")).to_contain_text("sample 4")


def test_each_of_two_samples_has_its_own_drawing(opened: Explored) -> None:
    page = opened.page
    page.get_by_label("Two samples").check()
    page.locator("#tab-draw").click()
    page.locator(".pad canvas").click()
    drawn = opened.pixels(".pad canvas")
    expect(page.locator(".preview")).to_contain_text("B: your drawing")
    page.get_by_role("button", name="Choose A").click()
    expect(page.locator(".pad .hint")).to_be_visible()
    page.locator("#panel-draw [data-do=clear]").click()
    page.get_by_role("button", name="Choose B").click()
    assert opened.pixels(".pad canvas") == drawn


def test_an_image_is_uploaded(opened: Explored, tmp_path: Path) -> None:
    from PIL import Image

    Image.fromarray(np.full((40, 30), 200, dtype=np.uint8)).save(tmp_path / "<b>grey.png")
    (tmp_path / "broken.png").write_text("no image")
    page = opened.page
    page.locator("#tab-upload").click()
    page.locator("input[type=file]").set_input_files(tmp_path / "<b>grey.png")
    expect(page.locator(".preview figcaption")).to_have_text("<b>grey.png")
    page.locator("input[type=file]").set_input_files(tmp_path / "broken.png")
    expect(page.locator(".problem")).to_have_text("broken.png cannot be read as an image.")


def test_the_same_image_can_be_uploaded_again(opened: Explored, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("L", (20, 20), 90).save(tmp_path / "grey.png")
    page = opened.page
    for _ in range(2):
        page.locator("#tab-upload").click()
        assert page.locator(".drop").evaluate("box => box.scrollWidth <= box.clientWidth")
        with page.expect_file_chooser() as chooser:
            page.locator("input[type=file]").click()
        chooser.value.set_files(tmp_path / "grey.png")
        expect(page.locator(".preview figcaption")).to_have_text("grey.png")
        page.locator("#tab-samples").click()
        page.locator("[data-sample='3']").click()
        expect(page.locator(".preview figcaption")).to_contain_text("sample 4")


def test_samples_and_classes_are_compared(opened: Explored) -> None:
    page = opened.page
    page.get_by_label("Two samples").check()
    expect(page.locator("[data-panel=difference] figcaption")).to_contain_text("A minus B")
    expect(page.locator(".preview figure")).to_have_count(2)
    page.get_by_label("Two classes").check()
    expect(page.locator("[data-panel=second] figcaption")).to_contain_text("Mean gates: 1")
    before = opened.pixels("[data-panel=second] .map")
    page.get_by_label("Second group").select_option("5")
    expect(page.locator("[data-panel=second] figcaption")).to_contain_text("Mean gates: 5")
    assert opened.pixels("[data-panel=second] .map") != before
    page.get_by_label("With a class mean").check()
    expect(page.locator("[data-panel=difference] figcaption")).to_contain_text("Sample minus mean")
    page.get_by_label("One sample").check()
    expect(page.locator("[data-panel=outputs]")).to_be_visible()


def test_only_the_view_that_was_chosen_last_is_shown(opened: Explored) -> None:
    page = opened.page
    page.locator("#panel-samples select").select_option(label="7")
    page.locator(".grid button").first.click()
    expect(page.locator(".preview")).to_contain_text("true class: 7")
    page.get_by_label("With a class mean").check()
    expect(page.locator("[data-panel=second] figcaption")).to_contain_text("Mean gates: 7")
    page.wait_for_timeout(300)
    alone = opened.pixels("[data-panel=second] .map")
    choose = "modes => modes.forEach((mode) => document.querySelector(`[name=mode][value=${mode}]`).click())"
    page.evaluate(choose, ["classes", "mean"])  # the means of two classes take longer than that of one
    page.wait_for_timeout(300)
    assert opened.pixels("[data-panel=second] .map") == alone
    page.evaluate(choose, ["one", "two", "one"])
    page.wait_for_timeout(300)
    expect(page.locator("[data-panel=outputs]")).to_be_visible()
    expect(page.locator(".preview figure")).to_have_count(1)


def test_pointing_at_the_second_sample_reads_its_answer(opened: Explored) -> None:
    page = opened.page
    page.get_by_label("Two samples").check()
    answers = page.locator(".sentence").inner_text().split("B: ")
    a, b = (re.search(r"\d \(\d+%\)", answer) for answer in answers)
    assert a
    assert b
    assert a[0] != b[0]
    for panel, answer in (("ribbon-a", a[0]), ("ribbon-b", b[0])):
        canvas = page.locator(f"[data-panel={panel}] .map")
        box = canvas.bounding_box()
        assert box is not None
        canvas.hover(position={"x": 20, "y": box["height"] - 4})
        expect(page.locator(".readout")).to_contain_text(f"answer so far: {answer}")


def test_the_list_of_wrong_answers_follows_the_layers(opened: Explored) -> None:
    page = opened.page
    page.locator("#panel-samples select").select_option("wrong")
    page.locator("#keep").fill("0")
    expect_score(page, "0 of 4 layers open")
    listed = page.locator(".grid button").count()
    assert page.locator(".grid button:not(.wrong)").count() == 0
    page.locator("#panel-samples select").select_option("all")
    page.get_by_role("button", name="Show more").click()
    assert listed == min(page.locator(".grid button.wrong").count(), 60)


def test_an_answer_that_is_computed_again_is_marked(opened: Explored) -> None:
    script = "button => { button.click(); return document.getElementById('answer').classList.contains('busy'); }"
    assert opened.page.locator("#detail [data-do=switch]").evaluate(script)
    expect(opened.page.locator("#answer")).not_to_have_class(re.compile("busy"))
    expect_score(opened.page, "3 of 4 layers open")


def test_sliders_have_names(browser: Browser, table: Table) -> None:
    opened = Explored(browser, table[0])
    for name in ("Keep the most important", "Weights"):
        expect(opened.page.get_by_role("slider", name=name)).to_be_visible()
    opened.page.context.close()


def test_the_tour_explains_and_can_be_left(opened: Explored) -> None:
    page = opened.page
    page.locator("#invite [data-do=start]").click()
    titles = []
    for _ in range(7):
        titles.append(page.locator("#tour h2").inner_text())
        page.locator("#tour [data-do=next]").click()
    assert len(set(titles)) == 7
    expect(page.locator("#tour")).to_be_hidden()
    expect(page.locator("#invite")).to_be_hidden()
    page.locator("#start-tour").click()
    expect(page.locator("#tour .count")).to_have_text("1 of 7")
    page.keyboard.press("Escape")
    expect(page.locator("#tour")).to_be_hidden()
    expect(page.locator("#start-tour")).to_be_focused()


def test_the_tour_goes_on_after_another_view_was_chosen(opened: Explored) -> None:
    page = opened.page
    page.locator("#start-tour").click()
    page.locator("#tour [data-do=next]").click()
    page.get_by_label("Two classes").check()
    page.set_viewport_size({"width": 1200, "height": 800})  # places the card again, now without a target
    page.locator("#tour [data-do=next]").click()
    expect(page.locator("#tour h2")).to_contain_text("Gates decide")
    expect(page.locator("[data-panel=gates]")).to_have_class(re.compile("toured"))


def test_a_row_is_edited(browser: Browser, table: Table) -> None:
    path, run, _ = table
    opened = Explored(browser, path)
    page = opened.page
    page.locator("#tab-row").click()
    page.get_by_label(COLUMNS[0], exact=True).fill("9.5")
    page.get_by_label(COLUMNS[1], exact=True).select_option(label="red")
    page.get_by_label("sold").fill("2021-02-03")
    page.get_by_label("new", exact=True).select_option(label="false")
    page.get_by_label("share", exact=True).fill("3.5")
    expect(page.locator(".preview figcaption")).to_have_text("sample 1, edited")  # the true class is not known
    expect(page.locator(".sentence")).to_have_text(re.compile(r"\(\d+%\)\.$"))
    row = {COLUMNS[0]: "9.5", COLUMNS[1]: "red", "sold": "2021-02-03", "new": "False", "share": "3.5%"}
    page.wait_for_timeout(300)
    assert opened.values() == pytest.approx(run.predict_proba([row])[0], abs=6e-4)
    page.get_by_label(COLUMNS[0], exact=True).fill("")
    page.get_by_label(COLUMNS[1], exact=True).select_option("missing")
    page.wait_for_timeout(300)
    missing = run.predict_proba([row | {COLUMNS[0]: None, COLUMNS[1]: None}])
    assert opened.values() == pytest.approx(missing[0], abs=6e-4)
    assert opened.problems == []
    page.context.close()


def test_a_value_too_large_to_compute_with_has_no_answer(browser: Browser, table: Table) -> None:
    opened = Explored(browser, table[0])
    page = opened.page
    page.locator("#tab-row").click()
    page.get_by_label(COLUMNS[0], exact=True).fill("1e300")
    expect(page.locator(".sentence")).to_have_text("none, as a value is too large.")
    expect(page.locator(".bars .value").first).to_have_text("–")
    page.get_by_label(COLUMNS[0], exact=True).fill("3")
    expect(page.locator(".sentence")).to_contain_text("%")
    assert opened.problems == []
    page.context.close()


def test_the_training_is_played(browser: Browser, table: Table) -> None:
    path, run, x = table
    opened = Explored(browser, path)
    page = opened.page
    trained = opened.values()
    page.locator("#training input").fill("0")
    expect(page.locator("#training output")).to_have_text("before training")
    with torch.inference_mode():
        expected = run.model_at(0)(x[:1]).softmax(1)[0].tolist()
    page.wait_for_timeout(300)
    assert opened.values() == pytest.approx(expected, abs=2e-3)
    page.locator("#training button").click()
    expect(page.locator("#training output")).to_have_text("trained", timeout=10_000)
    expect(page.locator("#training button")).to_have_text("Play the training")
    assert opened.values() == trained
    assert opened.problems == []
    page.context.close()


def test_training_that_is_stopped_and_played_again_starts_again(browser: Browser, table: Table) -> None:
    opened = Explored(browser, table[0])
    button, output = opened.page.locator("#training button"), opened.page.locator("#training output")
    button.click()
    opened.page.wait_for_timeout(500)
    taken = opened.page.evaluate("""async () => {
      const [button, slider] = ['button', 'input'].map((tag) => document.querySelector(`#training ${tag}`));
      button.click();
      button.click();
      const began = performance.now();
      while (slider.value === '0') await new Promise(requestAnimationFrame);
      return performance.now() - began; }""")
    assert taken > 850  # each snapshot is shown for 900 milliseconds
    expect(output).to_have_text("trained", timeout=10_000)
    opened.page.context.close()


def test_feature_maps_can_be_asked_for_while_weights_change(browser: Browser, tmp_path: Path) -> None:
    model = ModelConfig("highway-conv", depth=3, width=4)
    config = TrainConfig(DataConfig("digits"), model, OptimConfig(lr=0.1), epochs=1, threads=1, snapshots=1)
    write_explore(train(config, tmp_path / "run", progress=False), tmp_path / "page.html")
    opened = Explored(browser, tmp_path / "page.html")
    opened.page.evaluate("""() => {
      const slider = document.querySelector('#training input');
      slider.value = 0;
      slider.dispatchEvent(new Event('input'));
      document.querySelector('#detail [data-do=after]').click(); }""")
    expect(opened.page.locator("#training output")).to_have_text("before training")
    expect(opened.page.locator("#detail .tiles canvas").first).to_be_visible()
    assert opened.problems == []
    opened.page.context.close()


def test_names_never_become_markup(browser: Browser, table: Table) -> None:
    opened = Explored(browser, table[0])
    for mode in ("mean", "two", "classes", "one"):
        opened.page.locator(f"[name=mode][value={mode}]").check()
    opened.page.wait_for_timeout(300)
    assert opened.page.title() == "table: explore"
    assert opened.page.locator(".bars .name").first.get_attribute("title") == EVIL
    assert opened.page.locator("main img, main script").count() == 0
    assert opened.problems == []
    opened.page.context.close()


def test_a_long_name_of_the_true_class_leaves_room_for_its_mark(browser: Browser, table: Table) -> None:
    opened = Explored(browser, table[0])
    page = opened.page
    page.locator("#panel-samples select").select_option(label=EVIL)
    page.locator(".grid button").first.click()
    expect(page.locator(".preview")).to_contain_text(EVIL)
    name, mark = page.locator(".bars .true .name"), page.locator(".bars .true .mark")
    right = "element => element.getBoundingClientRect().right"
    assert mark.evaluate(right) <= name.evaluate(right) + 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.context.close()


@pytest.mark.parametrize(("target", "options"), [("price", {}), ("a,b", {"task": "multilabel"})])
def test_numbers_and_labels_are_predicted(
    browser: Browser, tmp_path: Path, target: str, options: dict[str, object]
) -> None:
    run = table_run(tmp_path, target, **options)
    write_explore(run, tmp_path / "page.html")
    opened = Explored(browser, tmp_path / "page.html")
    expect(opened.page.locator("#score .big")).to_contain_text("R²" if target == "price" else "correct labels")
    expect(opened.page.locator(".bars li")).to_have_count(1 if target == "price" else 2)
    assert opened.problems == []
    opened.page.context.close()


def test_no_screen_needs_scrolling_sideways(opened: Explored) -> None:
    for mode in ("two", "one"):
        opened.page.locator(f"[name=mode][value={mode}]").check()
        for width in (320, 390, 768, 1920):
            opened.page.set_viewport_size({"width": width, "height": 800})
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_text_can_be_read_on_light_dark_and_paper(opened: Explored) -> None:
    script = """() => [...document.querySelectorAll('p, dt, dd, h2, h3, button:enabled, label, li, figcaption, span')]
      .filter((e) => e.checkVisibility() && e.textContent.trim()).map((e) => {
        let b = e;
        while (getComputedStyle(b).backgroundColor === 'rgba(0, 0, 0, 0)' && b.parentElement) b = b.parentElement;
        return [getComputedStyle(e).color, getComputedStyle(b).backgroundColor]; })"""
    papers, maps = set(), set()
    for media in ({"color_scheme": "light"}, {"color_scheme": "dark"}, {"media": "print"}):
        opened.page.emulate_media(**media)  # type: ignore[arg-type]
        pairs = {tuple(pair) for pair in opened.page.evaluate(script)}
        assert min(contrast(*pair) for pair in pairs) >= 4.5
        papers.add(opened.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        maps.add(opened.pixels("[data-panel=outputs] .map"))
    assert papers == {"rgb(255, 255, 255)", "rgb(22, 24, 29)"}
    assert len(maps) > 1


def test_it_prints_the_layers_across_the_whole_page(opened: Explored) -> None:
    page = opened.page
    page.set_viewport_size({"width": 718, "height": 1000})  # what is left of A4
    page.emulate_media(media="print")
    across = "element => [element.getBoundingClientRect().left, element.getBoundingClientRect().width]"
    whole = page.locator(".workbench").evaluate(across)
    assert page.locator("#journey").evaluate(across) == pytest.approx(whole, abs=1)
    assert not page.locator(".panels figcaption span").first.is_visible()  # what a click does
    assert page.locator(".bars .fill").first.evaluate("fill => getComputedStyle(fill).printColorAdjust") == "exact"


def test_it_prints_the_answer_on_the_first_page_and_whole_maps(opened: Explored) -> None:
    page = opened.page
    page.locator(".panels").evaluate("panels => panels.style.setProperty('--rows', 50)")  # as high as maps become
    assert len(re.findall(rb"/Type /Page\b", page.pdf(format="A4"))) == 3


def test_maps_that_still_fill_are_printed_full(opened: Explored) -> None:
    page = opened.page
    page.emulate_media(reduced_motion="no-preference")
    page.locator("[data-sample='3']").click()
    expect(page.locator(".preview")).to_contain_text("sample 4")
    page.emulate_media(media="print", reduced_motion="no-preference")
    at_once = opened.pixels("[data-panel=outputs] .map")
    page.wait_for_timeout(1500)
    assert opened.pixels("[data-panel=outputs] .map") == at_once
