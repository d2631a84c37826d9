"""Hostile names in every page: a real browser opens them, and nothing but the page's own code may run.

Names of columns, classes, categories, files and runs come from someone else's data. Each is a payload that would set
`window.taken`, change the title, or ask a server for something.
"""

import csv
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from _warm import run_forked, run_started

from verydeep.processes import python_command

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PAYLOADS = (
    "</script><script>window.taken=1</script>",
    "<img src=x onerror=window.taken=1>",
    '"><svg onload=window.taken=1>',
    "'-(window.taken=1)-'",
    "${window.taken=1}",
    "{{7*7}}{% raise %}",
    "<!--<script>",
    "]]><script>window.taken=1</script>",
    "javascript:window.taken=1",
    "\u2028window.taken=1//",
    "&lt;script&gt;window.taken=1&lt;/script&gt;",
    "<style>*{display:none}</style><base href=http://127.0.0.1:1/>",
    "<iframe srcdoc='<script>parent.taken=1</script>'>",
    "\\u003cscript\\u003ewindow.taken=1",
    "\x1b]0;taken\x07<b>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:1/'>",
)
WRITE = (
    ("train", "table.csv", "--target", "label", "--depth", "2", "--width", "3", "--epochs", "1", "--quiet"),
    ("report",),
    ("explore", "--no-open"),
    ("depth", "table.csv", "--target", "label", "--total-epochs", "2400", "--most", "2", "--width", "4", "--jobs", "1"),
)

PRESS = (
    "() => document.querySelectorAll('summary, button').forEach((element) => element.offsetParent && element.click())"
)


def write_pages(folder: Path, payload: str, depth: bool) -> list[dict[str, Any]]:
    """Write every page about a run on a table of hostile names; returns commands that failed."""
    folder.mkdir(parents=True)
    run = f"run {payload}".replace("/", "\N{FRACTION SLASH}").replace("\0", "")[:100]
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([payload, f"{payload} 2", "label"])
        writer.writerows([[i % 7, f"{payload}{i % 3}", f"{payload}{'ab'[i % 2]}"] for i in range(60)])
    train, report, explore, how_deep = WRITE
    commands = [
        (*train, "--folder", run, "--threads", "1"),
        (*report, run, "-o", "report.html", "--threads", "1"),
        (*explore, run, "-o", "explore.html", "--threads", "1"),
        *([(*how_deep, "--folder", f"depth {run}", "--quiet")] if depth else []),
    ]
    failed = []
    for arguments in commands:
        done = run_forked(arguments, folder=folder, seconds=120)
        if done.code:
            failed.append({"command": arguments[0], "code": done.code, "err": done.err[-1500:]})
    return failed


def look(pages: list[Path]) -> list[str]:
    """Open pages in a browser, press everything that can be pressed, and return what should not have happened."""
    from playwright.sync_api import Dialog, Request, sync_playwright

    problems: list[str] = []

    def dialog(opened: Dialog) -> None:
        problems.append(f"dialog: {opened.message}")
        opened.dismiss()

    def request(asked: Request) -> None:
        if not asked.url.startswith(("file:", "data:", "blob:")):
            problems.append(asked.url)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        for path in pages:
            page = browser.new_page()
            page.on("dialog", dialog)
            page.on("request", request)
            page.on("pageerror", lambda error: problems.append(f"{error}"))
            page.goto(path.as_uri())
            page.evaluate(PRESS)
            for _ in range(12):  # point at everything on the way down
                for x in range(40, 1200, 120):
                    page.mouse.move(x, 300)
                page.mouse.wheel(0, 500)
            page.wait_for_timeout(200)
            if page.evaluate("'taken' in window && window.taken === 1") or page.title() == "taken":
                problems.append(f"{path.name}: the name was run")
            if not page.evaluate("document.body.getBoundingClientRect().height > 100"):
                problems.append(f"{path.name}: the page is empty")
            page.close()
        browser.close()
    return problems


def trial(scratch: Path, number: int) -> dict[str, Any]:
    """One payload in every page."""
    if CHROMIUM is None:
        return {"verdict": "skipped: no chromium"}
    payload = PAYLOADS[number % len(PAYLOADS)]
    folder = scratch / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    failed = write_pages(folder, payload, depth=number % 8 == 0)
    pages = sorted(folder.rglob("*.html"))
    done = run_started(
        python_command(__file__, *map(str, pages)), folder=folder
    )  # this process must not have its threads
    problems = json.loads(done.out) if done.code == 0 else [done.err[-1500:]]
    record: dict[str, Any] = {"payload": payload, "pages": len(pages)}
    if failed:
        return record | {"verdict": "traceback" if "Traceback" in str(failed) else "clear error", "failed": failed}
    return record | {"verdict": "wrong" if problems else "same", **({"problems": problems} if problems else {})}


if __name__ == "__main__":
    print(json.dumps(look([Path(path) for path in sys.argv[1:]])))
