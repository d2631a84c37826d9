"""What the guide to training says can be done."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from verydeep.config import from_dict
from verydeep.training import TrainConfig

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "training.md").read_text()


@pytest.mark.slow
def test_the_examples_of_the_guide_run(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.S)
    assert len(examples) == 2
    for example in examples:
        subprocess.run([sys.executable, "-W", "error", "-c", example], check=True, cwd=tmp_path)


def test_the_guides_configuration_is_one() -> None:
    (toml,) = re.findall(r"```toml\n(.*?)```", GUIDE, flags=re.S)
    assert from_dict(TrainConfig, tomllib.loads(toml)).model.depth == 50


def test_the_guide_names_configurations_that_exist() -> None:
    named = set(re.findall(r"configs/[\w-]+\.toml", GUIDE))
    assert named
    assert all((ROOT / name).exists() for name in named)
