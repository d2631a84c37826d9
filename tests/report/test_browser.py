"""The report in a real browser: it runs, needs nothing, and can be read with a pointer, with keys and on paper."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from verydeep.analysis import Findings
from verydeep.report import write_report
from verydeep.training import Run

from . import _made_up as made_up

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine, so the report was not opened: apt install chromium"
)
pytestmark = [pytest.mark.slow, needs_chromium]
EVIL = "</script><script>document.title = 'taken'</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    findings = made_up.findings()
    write_report(trained, path, type(findings)(**vars(findings) | {"routing": made_up.routing((EVIL, "b", "c", "d"))}))
    return path


class Opened:
    """A page, and everything it complained about or asked for."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.problems: list[str] = []
        self.page: Page = browser.new_context(**options).new_page()
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on(
            "request", lambda request: self.problems.append(request.url) if self._outside(request.url) else None
        )
        self.page.goto(path.as_uri())

    def _outside(self, url: str) -> bool:
        return not url.startswith(("file:", "data:", "blob:"))

    def pixels(self, selector: str) -> str:
        return str(self.page.locator(selector).evaluate("canvas => canvas.toDataURL()"))


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Opened]:
    found = Opened(browser, report, viewport={"width": 1280, "height": 900})
    yield found
    found.page.context.close()


def test_it_opens_without_errors_and_asks_for_nothing(opened: Opened) -> None:
    opened.page.mouse.wheel(0, 5000)
    opened.page.wait_for_load_state("networkidle")
    assert opened.problems == []
    assert opened.page.title() == "small: verydeep report"  # and not what a class's name wants it to be


def test_pointing_at_a_cell_says_its_exact_values(opened: Opened) -> None:
    found = made_up.gates()
    canvas = opened.page.locator("canvas[data-map=sample]")
    box = canvas.bounding_box()
    assert box is not None
    left, top, right, bottom = 34, 2, 8, 34  # the edges of the map
    row, column = 2, 3
    x = left + (column + 0.5) / made_up.WIDTH * (box["width"] - left - right)
    y = top + (row + 0.5) / made_up.DEPTH * (box["height"] - top - bottom)
    canvas.hover(position={"x": x, "y": y})
    said = opened.page.locator("#gate-maps .readout").inner_text()
    assert said.startswith("layer 3, block 4: gate bias −")
    assert f"{float(f'{found.sample_gates[row][column]:.4g}'):g}" in said
    assert f"{float(f'{found.mean[row][column]:.4g}'):g}" in said
    opened.page.mouse.move(2, 2)
    assert "Point at a cell" in opened.page.locator("#gate-maps .readout").inner_text()


def test_keys_move_zoom_and_reset(opened: Opened) -> None:
    canvas, readout = opened.page.locator("canvas[data-map=mean]"), opened.page.locator("#gate-maps .readout")
    canvas.focus()
    assert readout.inner_text().startswith("layer 1, block 1:")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        opened.page.keyboard.press(key)
    assert readout.inner_text().startswith("layer 3, block 2:")
    whole = opened.pixels("canvas[data-map=mean]")
    opened.page.keyboard.press("+")
    assert opened.pixels("canvas[data-map=mean]") != whole
    opened.page.keyboard.press("0")
    assert opened.pixels("canvas[data-map=mean]") == whole
    opened.page.keyboard.press("End")
    assert readout.inner_text().startswith("layer 3, block 5:")


def test_a_wheel_scrolls_the_page_until_a_map_is_chosen(opened: Opened) -> None:
    canvas = opened.page.locator("canvas[data-map=mean]")
    canvas.scroll_into_view_if_needed()
    canvas.hover()
    whole = opened.pixels("canvas[data-map=output]")
    canvas.dispatch_event("wheel", {"deltaY": -100})
    assert opened.pixels("canvas[data-map=output]") == whole
    canvas.click()
    chosen = opened.pixels("canvas[data-map=output]")
    canvas.dispatch_event("wheel", {"deltaY": -100})
    assert opened.pixels("canvas[data-map=output]") != chosen  # maps that belong together zoom together


def test_another_class_can_be_chosen(opened: Opened) -> None:
    before = opened.pixels("#routing-maps canvas[data-page='0']")
    opened.page.locator("#routing-maps select").first.select_option(label="b")
    assert opened.pixels("#routing-maps canvas[data-page='0']") != before


def test_a_curve_is_read_with_pointer_and_keys(opened: Opened) -> None:
    chart = opened.page.locator("svg[data-chart=lesion-error]")
    readout = chart.locator("xpath=following-sibling::p")
    chart.focus()
    opened.page.keyboard.press("ArrowRight")
    assert readout.inner_text() == "layer 2: this layer closed 9.5%"
    chart.blur()
    chart.hover(position={"x": 90, "y": 100})
    assert readout.inner_text() == "layer 1: this layer closed 32%"


def test_the_values_can_be_saved(opened: Opened, tmp_path: Path) -> None:
    with opened.page.expect_download() as download:
        opened.page.locator("#gate-maps [data-do=save]").click()
    download.value.save_as(tmp_path / "gates.csv")
    lines = (tmp_path / "gates.csv").read_text().splitlines()
    assert len(lines) == 1 + made_up.DEPTH * made_up.WIDTH
    assert lines[1].startswith('"layer 1","block 1",')
    assert float(lines[1].split(",")[3]) == pytest.approx(made_up.gates().mean[0][0])


def test_every_control_is_reached_with_the_tab_key(opened: Opened) -> None:
    wanted = opened.page.locator("canvas[data-map], svg.chart, button, select, summary").count()
    script = "document.activeElement.matches('canvas[data-map], svg.chart, button, select, summary')"
    reached = 0
    for _ in range(4 * wanted):
        opened.page.keyboard.press("Tab")
        reached += bool(opened.page.evaluate(script))
        if opened.page.evaluate("document.activeElement === document.body"):
            break
    assert reached >= wanted


@pytest.mark.parametrize(("scheme", "paper", "ink"), [("light", 255, 29), ("dark", 22, 233)])
def test_it_follows_the_readers_scheme(browser: Browser, report: Path, scheme: Any, paper: int, ink: int) -> None:
    found = Opened(browser, report, color_scheme=scheme)
    style = found.page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert style[0].startswith(f"rgb({paper},")
    assert style[1].startswith(f"rgb({ink},")
    found.page.context.close()


def test_a_dark_screen_prints_on_white(browser: Browser, report: Path) -> None:
    found = Opened(browser, report, color_scheme="dark")
    dark = found.pixels("canvas[data-map=output]")
    found.page.emulate_media(media="print")
    assert found.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert found.pixels("canvas[data-map=output]") != dark
    assert found.page.pdf().startswith(b"%PDF")
    found.page.context.close()


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_narrow_screen_needs_no_scrolling_sideways(browser: Browser, report: Path, width: int) -> None:
    found = Opened(browser, report, viewport={"width": width, "height": 800})
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    found.page.context.close()


def test_text_has_enough_contrast(browser: Browser, report: Path) -> None:
    script = """() => { const all = [];
      for (const e of document.querySelectorAll('p, dt, dd, th, td, a, li, summary, figcaption, button, span')) {
        let b = e;
        while (getComputedStyle(b).backgroundColor === 'rgba(0, 0, 0, 0)' && b.parentElement) b = b.parentElement;
        all.push([getComputedStyle(e).color, getComputedStyle(b).backgroundColor]); } return all; }"""
    for scheme in ("light", "dark"):
        found = Opened(browser, report, color_scheme=scheme)
        pairs = {tuple(pair) for pair in found.page.evaluate(script)}
        assert min(contrast(*pair) for pair in pairs) >= 4.5
        found.page.context.close()


def contrast(first: str, second: str) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    bright, dim = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


RECORD = """
globalThis.drawn = [];
const draw = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, most) {
  const at = this.getTransform().transformPoint({ x, y });
  drawn.push({ map: this.canvas.dataset.map ?? "", text, x: at.x, turned: this.getTransform().b !== 0 });
  draw.call(this, text, x, y, most);
};
"""


def test_both_edges_name_their_own_classes_when_cells_stand_for_several(
    browser: Browser, trained: Run, tmp_path: Path
) -> None:
    classes = tuple(f"class {i}" for i in range(300))  # two to a row, and one to a column
    write_report(trained, tmp_path / "many.html", Findings(routing=made_up.routing(classes)))
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(RECORD)
    page = context.new_page()
    page.goto((tmp_path / "many.html").as_uri())
    found = page.evaluate("""() => {
      drawn = [];
      groups.forEach((group) => group.draw());
      const { box } = groups.flatMap((group) => group.maps).find((map) => map.id === "distance");
      return { drawn: drawn.filter((one) => one.map === "distance"), box, scale: Math.max(devicePixelRatio, 2),
        names: store.maps.distance.names, steps: store.maps.distance.steps };
    }""")
    context.close()
    assert found["steps"] == [2, 1]
    columns = [one for one in found["drawn"] if one["turned"]]
    assert [one["text"] for one in columns] == found["names"][::8]
    assert [one["text"] for one in found["drawn"] if not one["turned"]] == found["names"][::8]
    width, left = found["box"]["width"], found["box"]["left"]
    places = [left + (column + 0.5) / 300 * width for column in range(0, 300, 8)]
    assert [one["x"] / found["scale"] for one in columns] == pytest.approx(places)


def test_layers_are_numbered_with_whole_numbers(browser: Browser, report: Path) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_init_script(RECORD)
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator("canvas[data-map=mean]").focus()
    for _ in range(3):
        page.keyboard.press("+")
    page.evaluate("() => { drawn = []; groups.forEach((group) => group.draw()); }")
    numbers = page.evaluate("() => drawn.filter((one) => one.map === 'mean').map((one) => one.text)")
    context.close()
    assert {"1", "2", "3", "4"} <= set(numbers)
    assert {text for text in numbers if "." in text} == set()
