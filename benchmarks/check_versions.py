"""Quick tests with other versions of the dependencies: `make check-versions`.

torch stays at the version in constraints.txt. Every other dependency of pyproject.toml is installed once at its newest
version and once at the lowest that pyproject.toml allows, each time in a new environment in build/versions. The tests
cover the places where dependencies are used: kernels, data, training, analysis, figures, estimators and searches.
What was installed and whether it passed is written to results/benchmarks/check-versions.json.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from _result import write_result

from verydeep.processes import python_command

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "results" / "benchmarks" / "check-versions.json"
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "pandas", "polars", "pyarrow", "psycopg[binary]", "tensorboard")
TESTS = (
    "tests/kernels/test_gate.py",
    "tests/nn/test_layers.py",
    "tests/data/own",
    "tests/data/test_load_dataset.py",
    "tests/training/test_defaults.py",
    "tests/training/test_eval.py",
    "tests/analysis/test_lesions.py",
    "tests/report/test_figures.py",
    "tests/estimators/test_estimators.py",
    "tests/search/test_space.py",
    "tests/search/test_command.py",
    "tests/test_cli.py",
)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("which", nargs="?", choices=["newest", "lowest"], help="by default, both")
    which = options.parse_args().which
    chosen = [which] if which else ["newest", "lowest"]
    results = json.loads(RESULT.read_text())["results"] if RESULT.exists() else {}
    for which in chosen:
        results[which] = check(which)
        write_result(RESULT, {"command": "python benchmarks/check_versions.py", "results": results})
    return int(not all(results[which]["passed"] for which in chosen))


def check(which: str) -> dict[str, Any]:
    """Install and test one set of versions; return them, and whether the tests passed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.split(r"[<>=\[]", line)[0] for line in project["dependencies"]]
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), flags=re.M))
    lowest = [
        re.sub(r">=([\w.]+).*", r"==\1", line) for line in project["dependencies"] if not line.startswith("torch")
    ]
    wanted = lowest if which == "lowest" else ["--upgrade", *(name for name in names if name != "torch")]
    folder = ROOT / "build" / "versions" / which
    subprocess.run(python_command("-m", "venv", "--clear", str(folder)), check=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, f"torch=={pins['torch']}", *wanted, *TOOLS], check=True)
    subprocess.run([*install, "--no-deps", "-e", ROOT], check=True)
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
    )
    versions = dict(line.split("==", 1) for line in listed.stdout.split() if "==" in line)
    found = {name.lower(): version for name, version in versions.items()}
    print(f"{which}:", ", ".join(f"{name} {found.get(name, '?')}" for name in names), flush=True)
    tests = [test for test in TESTS if (ROOT / test).exists()]
    pytest = [python, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", "-o", "filterwarnings=default", *tests]
    ended = subprocess.run(pytest, cwd=ROOT, check=False)  # other versions may warn of what they will change
    print(f"{which}: {'passed' if ended.returncode == 0 else 'failed'}", flush=True)
    return {"versions": {name: found.get(name, "?") for name in names}, "passed": ended.returncode == 0}


if __name__ == "__main__":
    sys.exit(main())
