"""What a call from Python shows: a bar in a terminal, a text that replaces itself in a notebook, else nothing."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from verydeep.data import Dataset
from verydeep.training import ProgressLines, TrainConfig, TrainingProgress, resume, train
from verydeep.training.progress._progress import NotebookProgress, ProgressBar, choose_progress

Configure = Callable[..., TrainConfig]


class Notebook:
    """Stands in for IPython, and keeps what every output of a cell has shown."""

    def __init__(self) -> None:
        self.outputs: list[list[str]] = []

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert (raw, display_id) == (True, True)
        shown = [content["text/plain"]]
        self.outputs.append(shown)
        return SimpleNamespace(update=lambda content, raw: shown.append(content["text/plain"]))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    fake, ipython, display = Notebook(), ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.display = fake.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return fake


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verydeep.training.progress._progress.is_terminal", lambda: True)


def test_a_training_prints_nothing_into_a_file(
    tiny: Dataset, configure: Configure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(configure(), tmp_path / "run", dataset=tiny)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("terminal")
def test_a_training_shows_its_epochs_in_a_terminal(
    tiny: Dataset, configure: Configure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny)
    assert "epoch 2/2  loss " in capsys.readouterr().out
    resume(run, epochs=3, dataset=tiny, progress=False)
    resume(run, epochs=4, dataset=tiny, progress=None)
    assert capsys.readouterr() == ("", "")


def test_a_training_shows_its_epochs_in_a_notebook(
    tiny: Dataset, configure: Configure, tmp_path: Path, notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = train(configure(), tmp_path / "parent", dataset=tiny, progress=False)
    assert notebook.outputs == []
    train(configure(epochs=15, init=str(parent.path)), tmp_path / "run", dataset=tiny)
    [shown] = notebook.outputs  # one output, replaced again and again
    assert shown[0].splitlines()[-1].startswith("epoch 1/15  ░░░░")
    assert shown[0].splitlines()[0] == "training highway-mlp on tiny"
    first, *lines = (line for line in shown[-1].splitlines() if line[0] != " ")
    assert first == "training highway-mlp on tiny"
    assert lines[0].startswith("starting from the weights of ")
    assert lines[1] == "... 3 earlier epochs"
    assert [line.split()[1] for line in lines[2:]] == [f"{epoch}/15" for epoch in range(4, 16)]
    assert capsys.readouterr() == ("", "")


def test_an_object_is_used_as_it_is() -> None:
    own = TrainingProgress()
    assert choose_progress(own) is own


@pytest.mark.usefixtures("terminal", "notebook")
def test_ipython_in_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(choose_progress(True), NotebookProgress)
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", SimpleNamespace)
    assert isinstance(choose_progress(True), ProgressBar)


def test_many_short_epochs_get_a_line_for_some_of_them(
    tiny: Dataset, configure: Configure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(configure(epochs=100, batch_size=200), tmp_path / "run", dataset=tiny, progress=ProgressLines())
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("epoch")]
    numbers = [int(line.split()[1].split("/")[0]) for line in lines]
    assert numbers[0] == 1
    assert {*range(4, 101, 4)} <= set(numbers)
    assert len(numbers) < 100
