"""The JSON schema of configurations: current, right about every file that comes with verydeep, and strict."""

import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from verydeep.cli import main
from verydeep.cli.commands._schema import config_schema

CONFIGS = Path(__file__).parents[1] / "configs"


def test_the_committed_schema_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    """If this fails: verydeep schema -o configs/schema.json."""
    assert main(["schema"]) == 0
    assert (CONFIGS / "schema.json").read_text(encoding="utf-8") == capsys.readouterr().out


def test_every_configuration_is_valid() -> None:
    validator = Draft7Validator(config_schema())
    files = sorted(CONFIGS.rglob("*.toml"))
    assert len(files) > 90
    for file in files:
        assert [error.message for error in validator.iter_errors(tomllib.loads(file.read_text()))] == [], file.name


@pytest.mark.parametrize(
    "settings",
    [
        {"epoch": 3},
        {"epochs": 0.5},
        {"optim": {"lr": "high"}},
        {"optim": {"name": "lbfgs"}},
        {"search": {"sampler": "grid"}},
        {"extends": 1},
    ],
)
def test_mistakes_are_marked(settings: dict[str, object]) -> None:
    assert not Draft7Validator(config_schema()).is_valid(settings)


@pytest.mark.parametrize(
    "settings", [{"average": 2.0}, {"evaluate_test": True}, {"class_weight": "balanced"}, {"class_weight": ["a=1"]}]
)
def test_what_files_may_say_is_accepted(settings: dict[str, object]) -> None:
    assert Draft7Validator(config_schema()).is_valid(settings)
