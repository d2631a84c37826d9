"""What the guide to the analysis says can be done."""

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
