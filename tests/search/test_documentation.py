"""What the guide to searching says can be done, word by word."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from verydeep.cli import main
from verydeep.search import Options, read_search
from verydeep.training import Run

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "search.md").read_text()


@pytest.mark.slow
def test_the_guides_own_table_is_searched_word_by_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, in_python = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.S)
    (toml,) = re.findall(r"```toml\n(.*?)```", GUIDE, flags=re.S)
    commands = re.findall(r"```\n(verydeep .*?)```", GUIDE, flags=re.S)[0].splitlines()
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "-c", program], check=True)
    Path("flowers.toml").write_text(toml)
    assert len(commands) == 4
    for command in commands:
        assert main(command.split()[1:]) == 0
    best = _loss(Path("runs/best"))
    printed = subprocess.run([sys.executable, "-c", in_python], check=True, capture_output=True, text=True).stdout
    assert printed.endswith(f"{best}\n")
    assert best == min(_loss(path) for path in Path("runs/flowers/trials").iterdir())


def _loss(path: Path) -> float:
    measured = Run.load(path).measured
    assert measured is not None
    assert measured.valid_loss is not None
    return measured.valid_loss


def test_the_guide_names_every_option_of_the_table() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", GUIDE, flags=re.M))
    assert set(Options.__dataclass_fields__) <= named


@pytest.mark.parametrize("file", sorted((ROOT / "configs").glob("search-*.toml")), ids=lambda path: path.stem)
def test_the_configurations_for_searches_are_ones(file: Path) -> None:
    assert read_search(file).space
