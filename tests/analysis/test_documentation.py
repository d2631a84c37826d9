"""What the guide to the analysis says can be done."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import verydeep.analysis

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "analysis.md").read_text()


@pytest.mark.slow
def test_the_example_of_the_guide_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.S)
    subprocess.run([sys.executable, "-W", "error", "-c", example], check=True, cwd=tmp_path)


@pytest.mark.slow
def test_the_examples_about_residual_networks_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "residual.md").read_text()
    examples = "\n".join(re.findall(r"```python\n(.*?)```", page, flags=re.S))
    subprocess.run([sys.executable, "-c", examples], check=True, cwd=tmp_path)


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
    assert set(re.findall(r"--([a-z][a-z-]*)", GUIDE)) <= options


def test_every_public_name_is_there() -> None:
    assert all(hasattr(verydeep.analysis, name) for name in verydeep.analysis.__all__)
