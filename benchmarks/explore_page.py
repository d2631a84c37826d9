"""How fast the interactive page is: `python benchmarks/explore_page.py [NAME ...]`.

Writes the pages of a few networks and uses them in headless chromium: how large a file is, how long it takes to open,
and how long after choosing another sample, or after a click that closes a layer, the answer and the score over all
samples are there. Times are from the click to the changed text, the minimum and the median. On a busy machine they say
little; the processor time of the page per click, for answer, score and drawing together, depends less on what else
runs. Results: results/benchmarks/explore-page.json; those of networks that are not named stay.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from _result import write_result
from playwright.sync_api import CDPSession, Page, sync_playwright

from verydeep.data import DataConfig
from verydeep.report import write_explore
from verydeep.training import ModelConfig, Run, TrainConfig, train

OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "explore-page.json"
CLICKS, SECONDS = 16, 60  # clicks to close and to open again, and about how long they may take for a slow network
CHANGED = """const changed = (selector) => new Promise((resolve) => {
    const target = document.querySelector(selector);
    const observer = new MutationObserver(() => { observer.disconnect(); resolve(performance.now()); });
    observer.observe(target, { childList: true, characterData: true, subtree: true });
  });"""
CLICK = f"""async (layer) => {{
  {CHANGED}
  const {{ steps }} = JSON.parse(document.querySelector("#data").textContent).network;
  const rows = steps.slice(0, -1).filter((step) => step.op !== "pool"); // the classifier has none
  const canvas = document.querySelector(".switches"), box = canvas.getBoundingClientRect();
  const row = rows.findIndex((step) => step.layer === layer);
  const y = box.top + 1 + (row + 0.5) / rows.length * (box.height - 2);
  const answer = changed(".bars"), score = changed("#score .text"), began = performance.now();
  canvas.dispatchEvent(new MouseEvent("click", {{ bubbles: true, clientX: box.right - 5, clientY: y }}));
  return [await answer - began, await score - began, Number(document.querySelector("#score").dataset.milliseconds)];
}}"""
CHOOSE = f"""async (sample) => {{
  {CHANGED}
  const answer = changed(".bars"), began = performance.now();
  document.querySelector(`[data-sample="${{sample}}"]`).click();
  return await answer - began;
}}"""


def pretrained(_folder: Path) -> Run:
    return Run.load("pretrained:highway50-mnist")


def thousand_layers(folder: Path) -> Run:
    config = TrainConfig(DataConfig("digits"), ModelConfig(depth=1000, width=50), epochs=1, threads=1)
    return train(config, folder / "deep", progress=False)


def highway_b(folder: Path) -> Run:
    """The largest convolutional network of the tables; its weights do not matter for the speed."""
    random = np.random.default_rng(0)
    pictures = random.integers(0, 256, (60, 3, 32, 32), dtype=np.uint8)
    np.savez(folder / "pictures.npz", x=pictures, y=np.arange(60) % 10)
    config = TrainConfig(DataConfig(str(folder / "pictures.npz")), ModelConfig("highway-b"), epochs=1, threads=1)
    return train(config, folder / "conv", progress=False)


NETWORKS: dict[str, Callable[[Path], Run]] = {
    "highway50-mnist": pretrained,
    "1000 layers": thousand_layers,
    "highway-b": highway_b,
}


def wait_for_score(page: Page) -> None:
    while not page.evaluate("document.querySelector('#score').dataset.milliseconds"):
        page.wait_for_timeout(50)


def processor_seconds(session: CDPSession) -> float:
    """The processor time of all pages of the browser so far."""
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    return float(sum(process["cpuTime"] for process in processes if process["type"] == "renderer"))


def measure(page: Page, session: CDPSession, path: Path, layers: int) -> dict[str, Any]:
    began = time.perf_counter()
    page.goto(path.as_uri())
    wait_for_score(page)
    opened = time.perf_counter() - began
    page.evaluate(CHOOSE, 1)  # the first runs are compiled
    chosen = [page.evaluate(CHOOSE, sample) for sample in (2, 3, 4, 5, 6)]
    first = page.evaluate(CLICK, 0)
    count = int(np.clip(SECONDS / 2 / (first[1] / 1e3), 3, min(CLICKS, layers)))
    closed = np.linspace(0, layers - 1, count).astype(int).tolist()
    before = processor_seconds(session)
    clicks = [page.evaluate(CLICK, layer) for layer in [*closed, *reversed(closed)]]
    used = 1e3 * (processor_seconds(session) - before) / len(clicks)
    names = ("milliseconds_to_answer", "milliseconds_to_score", "milliseconds_of_scoring")
    measured = {"milliseconds_to_answer_for_another_sample": chosen} | dict(
        zip(names, zip(*clicks, strict=True), strict=True)
    )
    times = {
        name: {"minimum": round(min(values), 1), "median": round(statistics.median(values), 1)}
        for name, values in measured.items()
    }
    found = {"seconds_to_open": round(opened, 2), "clicks": len(clicks), **times}
    return found | {"processor_milliseconds_per_click": round(used, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(NETWORKS)}; by default, all")
    names = parser.parse_args().names or list(NETWORKS)
    if unknown := set(names) - set(NETWORKS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(NETWORKS)}")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("explore_page: chromium or Chrome must be installed")
    results = json.loads(OUT.read_text())["networks"] if OUT.exists() else {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        options = {"args": ["--disable-gpu", "--disable-dev-shm-usage"], "executable_path": browser}
        chromium = playwright.chromium.launch(**options)  # type: ignore[arg-type]
        session = chromium.new_browser_cdp_session()
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        page.emulate_media(reduced_motion="reduce")
        for name in names:
            run = NETWORKS[name](Path(folder))
            path, began = Path(folder) / "page.html", time.perf_counter()
            samples = write_explore(run, path)
            results[name] = {
                "megabytes": round(path.stat().st_size / 1e6, 2),
                "samples": int(samples.scored.sum()),
                "seconds_to_write": round(time.perf_counter() - began, 1),
                **measure(page, session, path, run.model.highway_depth),
                "load_average": round(os.getloadavg()[0], 2),
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
            }
            print(name, results[name], flush=True)
            write_result(
                OUT, {"command": " ".join(["python benchmarks/explore_page.py", *sys.argv[1:]]), "networks": results}
            )


if __name__ == "__main__":
    main()
