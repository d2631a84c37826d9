import html
import re
from pathlib import Path

import pytest
import torch
from PIL import Image

from verydeep.report import plot_confusion
from verydeep.training import Confusion


def made_up(classes: int) -> Confusion:
    counts = torch.eye(classes, dtype=torch.int64) * 50
    counts[0, 1] = 7
    return Confusion(tuple(f"class {i}" for i in range(classes)), counts, 0.25)


def words(path: Path) -> list[str]:
    """matplotlib draws letters as shapes and says beside each text what it is, as a comment."""
    return re.findall(r"<!-- (.*?) -->", path.read_text())


def test_few_classes_are_named_and_counted(tmp_path: Path) -> None:
    plot_confusion(made_up(10), tmp_path / "a.svg", title="digits")
    found = words(tmp_path / "a.svg")
    assert found.count("class 3") == 2  # its row and its column
    assert found.count("50") == 10
    assert found.count("7") == 1
    assert "digits" in found


@pytest.mark.slow
def test_many_classes_are_named_and_not_counted(tmp_path: Path) -> None:
    plot_confusion(made_up(100), tmp_path / "a.svg")
    found = words(tmp_path / "a.svg")
    assert found.count("class 99") == 2
    assert found.count("50") == 0


def test_very_many_classes_are_only_coloured(tmp_path: Path) -> None:
    plot_confusion(made_up(400), tmp_path / "a.svg")
    assert not [word for word in words(tmp_path / "a.svg") if word.startswith("class ")]


def test_the_right_answers_are_the_brightest(tmp_path: Path) -> None:
    plot_confusion(made_up(2), tmp_path / "a.png")
    image = Image.open(tmp_path / "a.png").convert("L")
    assert image.width > 400
    brightest, darkest = 225, 40  # of cividis: a whole class, and none of it
    assert sum(image.histogram()[brightest - 10 : brightest + 10]) > 1000
    assert sum(image.histogram()[: darkest + 10]) > 1000


@pytest.mark.parametrize("name", ["$x^", "<&>", "面", "[bold]", "a\nb"])
def test_names_are_drawn_as_they_are(tmp_path: Path, name: str) -> None:
    confusion = Confusion((name, "other"), torch.ones(2, 2, dtype=torch.int64), 0.1)
    figure = plot_confusion(confusion, tmp_path / "a.svg", title=name)
    texts = [figure.axes[0].title, figure.axes[0].get_xticklabels()[0], figure.axes[0].get_yticklabels()[0]]
    assert [text.get_text() for text in texts] == [name] * 3
    assert not any(text.get_parse_math() for text in texts)
    found = [html.unescape(word) for word in words(tmp_path / "a.svg")]
    assert all(found.count(line) == 3 for line in name.splitlines())


def test_a_class_without_samples_is_left_dark(tmp_path: Path) -> None:
    counts = torch.tensor([[3, 0], [0, 0]])
    confusion = Confusion(("a", "b"), counts, 0.1)
    plot_confusion(confusion, tmp_path / "a.png")
    assert confusion.class_accuracy == [1.0, None]
