"""The examples of the guide to own data, run one after the other as a reader would."""

import re
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_iris  # type: ignore[import-untyped]

GUIDE = (Path(__file__).parents[2] / "docs" / "own-data.md").read_text()


def test_the_examples_of_the_guide_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flowers, lines = load_iris(), ["length,width,petal_length,petal_width,species"]
    lines += [
        ",".join(map(str, [*row, flowers.target_names[y]])) for row, y in zip(flowers.data, flowers.target, strict=True)
    ]
    (tmp_path / "flowers.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "new-flowers.csv").write_text("\n".join(lines[:5]) + "\n")
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    for program in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.S):
        exec(program, known)
    assert known["inputs"].classes == ("setosa", "versicolor", "virginica")
    assert known["data"].train.x.shape == (50, 3, 64, 64)
