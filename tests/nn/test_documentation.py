"""What the guide to the layers says can be done."""

from pathlib import Path

import verydeep.nn

GUIDE = (Path(__file__).parents[2] / "docs" / "layers.md").read_text()


def test_the_guide_names_every_layer() -> None:
    layers = [name for name in verydeep.nn.__all__ if isinstance(getattr(verydeep.nn, name), type) and name != "Trace"]
    assert [name for name in layers if f"`{name}" not in GUIDE] == []
