"""What the guide to searching says can be done, word by word."""

import re
from pathlib import Path

import pytest

from verydeep.search import Options, read_search

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "searching.md").read_text()


def test_the_guide_names_every_option_of_the_table() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", GUIDE, flags=re.M))
    assert set(Options.__dataclass_fields__) <= named


@pytest.mark.parametrize("file", sorted((ROOT / "configs").glob("search-*.toml")), ids=lambda path: path.stem)
def test_the_configurations_for_searches_are_ones(file: Path) -> None:
    assert read_search(file).space
