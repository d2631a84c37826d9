"""What the page about scikit-learn says can be done."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "sklearn.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path) -> None:
    assert len(EXAMPLES) == 4
    script = "\n".join(EXAMPLES)  # each imports what it uses; one process imports torch only once
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        check=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},  # like all tests
    )
    accuracy = re.findall(r"^([\d.]+)% on test data", run.stdout, flags=re.M)
    assert float(accuracy[0]) > 85
    (rents,) = re.findall(r"^\[ *(\d+)\.\d* +(\d+)\.\d*\]$", run.stdout, flags=re.M)
    assert 400 < float(rents[0]) < 600 < float(rents[1])
    assert list(tmp_path.iterdir()) == []
