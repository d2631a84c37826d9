"""What the guide to the layers says can be done."""

import re
from pathlib import Path

import pytest

import verydeep.nn

GUIDE = (Path(__file__).parents[2] / "docs" / "layers.md").read_text()


@pytest.mark.slow
def test_the_examples_of_the_guide_run_and_print_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for example in re.findall(r"```python\n(.*?)```", GUIDE, flags=re.S):
        exec(example, names)  # they build on each other
    printed = capsys.readouterr().out
    for words in ("[-2.3, -4.0, -7.0]", "-7.01", "torch.Size([100, 8, 50])", "torch.Size([4, 16])"):
        assert words in GUIDE
        assert words in printed


def test_the_guide_names_every_layer() -> None:
    layers = [name for name in verydeep.nn.__all__ if isinstance(getattr(verydeep.nn, name), type) and name != "Trace"]
    assert [name for name in layers if f"`{name}" not in GUIDE] == []
