"""Settings that had another name in an earlier version are still read, in files and in stored studies."""

import warnings
from pathlib import Path

import pytest

from verydeep.errors import UserError
from verydeep.search import Range, open_search, read_search, start_search
from verydeep.studies import Budget, draw, with_settings, work
from verydeep.training import TrainConfig

from .conftest import Write, start

NAMES = {"ema_half_life": "average", "divergence_factor": "explosion"}
SPACE = """ema_half_life = { low = 0.5, high = 2.0 }
divergence_factor = { choices = [50.0, 100.0] }
"""


def under_former_names(text: str) -> str:
    for new, old in NAMES.items():
        text = text.replace(new, old)
    return text


@pytest.fixture
def files(write: Write) -> tuple[Path, Path]:
    """The same search under present and under former names."""
    new = write()
    new.write_text(new.read_text() + SPACE)
    old = new.with_name("old.toml")
    old.write_text(under_former_names(new.read_text()))
    return new, old


def test_a_file_with_former_names_is_the_same_search_with_one_hint_each(files: tuple[Path, Path]) -> None:
    new, old = files
    old.write_text("average = 3.0\n" + old.read_text())
    new.write_text("ema_half_life = 3.0\n" + new.read_text())
    with pytest.warns(FutureWarning) as hints:
        found = read_search(old)
    assert [str(hint.message) for hint in hints] == [
        f"{old}: 'average' is now called 'ema_half_life'",
        f"{old}: search.space: 'average' is now called 'ema_half_life'",
        f"{old}: search.space: 'explosion' is now called 'divergence_factor'",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found == read_search(new)
    assert found.train.ema_half_life == 3.0


@pytest.mark.slow
def test_the_command_prints_the_hints_and_searches(files: tuple[Path, Path], tmp_path: Path) -> None:
    study = tmp_path / "study"
    process = start(files[1], "--study", study, "--jobs", 1, "--quiet")
    assert process.communicate()[1].decode().splitlines() == [
        f"verydeep: note: {files[1]}: search.space: 'average' is now called 'ema_half_life'",
        f"verydeep: note: {files[1]}: search.space: 'explosion' is now called 'divergence_factor'",
    ]
    assert process.returncode == 0
    assert {record.status for record in open_search(study).records()} == {"finished"}


def test_a_field_keeps_its_values_when_it_is_renamed() -> None:
    settings = draw({"ema_half_life": Range(0.5, 2.0), "divergence_factor": Range(10.0, 100.0)}, 0, 0)
    assert settings == {"ema_half_life": 1.34325, "divergence_factor": 42.4024}  # as under their former names


def test_the_space_may_vary_what_the_file_gives_under_a_former_name(files: tuple[Path, Path]) -> None:
    new, _ = files
    new.write_text("explosion = 70.0\n" + new.read_text())
    with pytest.warns(FutureWarning, match="'explosion' is now called 'divergence_factor'"):
        assert read_search(new).train.divergence_factor == 70.0


def test_settings_with_former_names_are_applied() -> None:
    assert with_settings(TrainConfig(), {"average": 2.0}).ema_half_life == 2.0


def test_a_study_that_was_stored_under_former_names_goes_on(files: tuple[Path, Path], tmp_path: Path) -> None:
    new, _ = files
    calm, folder = tmp_path / "calm" / "study", tmp_path / "study"
    assert work(start_search(calm, read_search(new)))
    expected = [record.settings for record in open_search(calm).records()]

    assert not work(start_search(folder, read_search(new)), budget=Budget(epochs=1))
    for name in ("study.json", "journal.log"):
        (folder / name).write_text(under_former_names((folder / name).read_text()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # people cannot rename anything in a stored study
        study = open_search(folder)
        assert study.records()[0].settings == expected[0]
        assert work(start_search(folder, read_search(new)))
    found = open_search(folder).records()
    assert [record.settings for record in found] == expected
    assert [record.attempts for record in found] == [1, 1, 1]


def test_both_names_at_once_are_refused(files: tuple[Path, Path]) -> None:
    new, _ = files
    new.write_text(new.read_text() + "average = { low = 0.5, high = 2.0 }\n")
    with pytest.raises(UserError, match=r"search\.space: unknown setting 'average'"):
        read_search(new)
