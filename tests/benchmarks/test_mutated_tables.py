"""Mutated tables: `train` and `predict` succeed, or say in one line what is wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from _mutations import make_case

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_mutated_table_is_used_or_refused_in_one_line(tmp_path: Path) -> None:
    """The same as benchmarks/mutated_tables.py, with other tables: 60 of the 10,000 and more."""
    script, out = ROOT / "benchmarks" / "mutated_tables.py", tmp_path / "result.json"
    command = [sys.executable, str(script), "--seed", "7", "--tables", "60", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(out.read_text())
    assert result["failures"] == []
    for command_name in ("train", "predict"):
        ended = result[command_name]
        assert ended["succeeded"] + ended["one_line_error"] == 60
        assert min(ended["succeeded"], ended["one_line_error"]) > 8


def test_a_case_is_the_same_every_time() -> None:
    assert [make_case(0, number) for number in range(20)] == [make_case(0, number) for number in range(20)]
    assert make_case(0, 1) != make_case(1, 1)
