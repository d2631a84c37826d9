"""What the guide to depth says can be done."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from verydeep.cli.commands._depth import DepthOptions
from verydeep.depth import DepthAnswer
from verydeep.depth._how_deep import _MOST
from verydeep.depth._plan import _LEAST_SHARE
from verydeep.depth._problem import _WIDTHS, FOLDS
from verydeep.depth._rule import DRAWS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "depth.md").read_text()
TEXT = " ".join(GUIDE.split())


@pytest.mark.slow
def test_the_example_of_the_guide_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.S)
    subprocess.run([sys.executable, "-W", "error", "-c", example], check=True, cwd=tmp_path)
    assert (tmp_path / "depth.png").exists()
    assert DepthAnswer.load(tmp_path / "runs" / "small").network is not None
    for name in ("depth.html", "depth.json", "network", "plan.json"):
        assert f"`{name}`" in GUIDE
        assert (tmp_path / "runs" / "small" / name).exists()


def test_the_guide_states_the_numbers_of_the_code() -> None:
    assert "{}, {} or {}".format(*_WIDTHS["mlp"]) in TEXT
    assert len(_WIDTHS["conv"]) == 1
    assert f"{_MOST['mlp']} layers by default, or {_MOST['conv']} per stage" in TEXT
    assert f"{DRAWS:,} bootstrap draws" in TEXT
    assert f"down to {_LEAST_SHARE:.0%}".replace("%", " %") in TEXT
    assert FOLDS == 5
    assert "another fifth" in TEXT


def test_the_guide_describes_every_option_that_limits_the_budget() -> None:
    for name in ("minutes", "total_epochs", "most", "network", "folder", "storage", "artifacts"):
        assert name in DepthOptions.__dataclass_fields__
        assert f"--{name.replace('_', '-')}" in GUIDE
