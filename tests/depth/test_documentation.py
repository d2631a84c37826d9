"""What the guide to depth says can be done."""

from pathlib import Path

from verydeep.cli.commands._depth import DepthOptions
from verydeep.depth._how_deep import _MOST
from verydeep.depth._plan import _LEAST_SHARE
from verydeep.depth._problem import _WIDTHS, FOLDS
from verydeep.depth._rule import DRAWS

ROOT = Path(__file__).parents[2]
GUIDE = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("depth", "depth-method"))
TEXT = " ".join(GUIDE.split())


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
