"""Configuration files that extend others, and configurations by name."""

from pathlib import Path

import pytest

from verydeep.config import find_config, list_configs, read_settings
from verydeep.errors import UserError
from verydeep.search import read_search
from verydeep.training import read_config


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_file_has_the_settings_of_the_one_it_extends_unless_it_has_its_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        base__first="epochs = 3\nseed = 1\nschedule = {name = 'multistep', factor = 0.5, milestones = [1, 2]}",
        base__second="extends = 'first.toml'\nseed = 2\n[model]\nname = 'plain-mlp'\ndepth = 5",
        mine="extends = 'base/second.toml'\n[model]\ndepth = 7\n[schedule]\nmilestones = [2]",
    )
    assert read_settings(tmp_path / "mine.toml") == {
        "epochs": 3,
        "seed": 2,
        "schedule": {"name": "multistep", "factor": 0.5, "milestones": [2]},
        "model": {"name": "plain-mlp", "depth": 7},
    }
    config = read_config(tmp_path / "mine.toml")
    assert (config.epochs, config.model.depth, config.schedule.milestones) == (3, 7, (2,))


def test_a_file_can_extend_a_configuration_that_comes_with_verydeep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, mine="extends = 'highway50-mnist'\nepochs = 2", elsewhere__other="epochs = 4")
    config = read_config(tmp_path / "mine.toml")
    assert (config.epochs, config.model.depth, config.optim.lr) == (2, 50, 0.2)
    write(tmp_path, mine="extends = 'other.toml'")
    monkeypatch.chdir(tmp_path / "elsewhere")  # what a file extends does not depend on the working directory
    with pytest.raises(UserError, match="which does not exist"):
        read_config(tmp_path / "mine.toml")


def test_a_search_can_extend_a_training_and_another_search(tmp_path: Path) -> None:
    write(
        tmp_path,
        base="[model]\ndepth = 5",
        search="extends = 'base.toml'\n[search]\ntrials = 3\n[search.space]\noptim.lr = {low = 0.1, high = 1.0}",
        more="extends = 'search.toml'\n[search]\ntrials = 4\n[search.space]\nmodel.width = {low = 2, high = 3}",
    )
    config = read_search(tmp_path / "more.toml")
    assert (config.options.trials, list(config.space), config.train.model.depth) == (4, ["optim.lr", "model.width"], 5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("extends = 3", "'extends' must be the path or name of one other configuration, got 3"),
        ("extends = ['a.toml', 'b.toml']", "'extends' must be the path or name of one other configuration"),
        ("extends = ''", "'extends' must be the path or name of one other configuration"),
        ("extends = 'file.toml'", "'extends' goes round in a circle"),
        ("extends = 'back.toml'", "'extends' goes round in a circle"),
        ("extends = 'bakc.toml'", "which does not exist; did you mean 'back.toml'?"),
        ("extends = 'highway-aa'", "which does not exist; did you mean 'highway-a'?"),
        ("extends = 'bad.toml'", "{folder}/bad.toml is not TOML"),
        ("extends = 'folder'", "which does not exist"),
    ],
)
def test_what_cannot_be_extended_is_one_clear_line(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path, file=text, back="extends = 'file.toml'", bad="= 3", folder__inside="")
    with pytest.raises(UserError) as error:
        read_config(tmp_path / "file.toml")
    assert words.format(folder=tmp_path) in str(error.value)
    assert str(error.value).startswith(str(tmp_path))
    assert "\n" not in str(error.value)


def test_configurations_are_found_by_name_and_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_config("fast/highway-a").parts[-2:] == ("fast", "highway-a.toml")
    (tmp_path / "highway50-mnist").mkdir()  # a run's folder is no configuration
    assert find_config("highway50-mnist").is_file()
    write(tmp_path, mine="")
    assert find_config("mine.toml") == Path("mine.toml")
    assert find_config(tmp_path / "mine.toml") == tmp_path / "mine.toml"
    assert all(find_config(name).is_file() for name in list_configs())
    assert not [name for name in list_configs() if name.startswith("base")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("highway50-mnst", "did you mean 'highway50-mnist'?"),
        ("highway-A", "did you mean 'highway-a'?"),
        ("fast/highway", "did you mean 'fast/highway-"),
        ("configs/highway50-mnist.toml", "did you mean 'highway50-mnist'?"),
        ("configs/fast/highway-a.toml", "did you mean 'fast/highway-a'?"),
        ("mien.toml", "did you mean 'mine.toml'?"),
        ("nothing-like-it", "give the path of a TOML file, or the name of a configuration"),
        ("../configs/highway-a", "there is no configuration '../configs/highway-a'"),
    ],
)
def test_the_nearest_configuration_is_named(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, mine="")
    with pytest.raises(UserError) as error:
        find_config(name)
    assert words in str(error.value)


def test_an_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    write(tmp_path, mine="lr = 0.1", wrong="[optim]\nlr = -1.0")
    with pytest.raises(UserError, match=r"mine.toml: unknown setting 'lr'; did you mean 'lr' in \[optim\]\?"):
        read_config(tmp_path / "mine.toml")
    with pytest.raises(UserError, match=r"wrong.toml: optim.lr must be positive and finite"):
        read_config(tmp_path / "wrong.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lr = 0.1", "mine.toml: unknown setting 'lr'; did you mean 'lr' in [optim]?"),
        ("[serach]", "mine.toml: unknown table 'serach'; did you mean [search]?"),
        (
            "[search.space]\nlr = {low = 0.1, high = 1.0}",
            "search.space: unknown setting 'lr'; did you mean 'optim.lr'?",
        ),
        ("[search.space]\noptim.lr = {low = -1.0, high = 1.0}", "search.space: optim.lr must be positive and finite"),
        ("[search]\ntrails = 3", "mine.toml: search: unknown setting 'trails'; did you mean 'trials'?"),
    ],
)
def test_an_error_in_a_search_suggests_the_right_setting_and_repeats_nothing(
    text: str, words: str, tmp_path: Path
) -> None:
    write(tmp_path, mine=text)
    with pytest.raises(UserError) as error:
        read_search(tmp_path / "mine.toml")
    assert words in str(error.value)
    assert str(error.value).count("lr") <= words.count("lr")
