"""A minute of the campaign of benchmarks/faults.py, with trials of its own: commands continue, or say what is wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from _file_faults import compiler
from _table_mutators import make_case

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler, so no file faults: apt-get install gcc")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "trials"),
    [(("kills", "io", "torn", "two"), 22), (("inputs", "tables", "options"), 80)],
    ids=["disturbed commands", "mutated inputs"],
)
def test_no_trial_fails(parts: tuple[str, ...], trials: int, tmp_path: Path) -> None:
    arguments = ["--seed", "7", "--trials", str(trials), "--folder", str(tmp_path), "--out", str(tmp_path / "all.json")]
    command = [sys.executable, str(ROOT / "benchmarks" / "faults.py"), *arguments, "--only", *parts]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    found = json.loads((tmp_path / "all.json").read_text())["parts"]
    assert {part: found[part]["trials"] for part in parts} == dict.fromkeys(parts, trials)
    assert all(found[part]["failed"] == 0 for part in parts)
    for part in {"inputs", "tables"} & set(parts):  # neither is everything refused, nor nothing changed
        assert {"success", "clear error"} <= set(found[part]["verdicts"])
    # the same command again has nothing left to do
    before = (tmp_path / "trials.jsonl").read_bytes()
    subprocess.run(command, capture_output=True, check=True)
    assert (tmp_path / "trials.jsonl").read_bytes() == before


def test_a_table_is_the_same_every_time() -> None:
    assert [make_case(0, number) for number in range(20)] == [make_case(0, number) for number in range(20)]
    assert make_case(0, 1) != make_case(1, 1)
