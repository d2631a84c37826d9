"""The recipes as files.

configs/NAME.toml is the authors' as far as they published it (`paper`), configs/fast/NAME.toml ours for a tenth of its
epochs; each says what was inferred or changed.
"""

from pathlib import Path
from typing import Literal

from verydeep.errors import UserError
from verydeep.training import TrainConfig, read_config

Recipe = Literal["paper", "fast"]
_PACKAGE = Path(__file__).parents[1]
_INSTALLED = _PACKAGE / "_configs"  # where a wheel has them
_CHECKOUT = _PACKAGE.parents[1] / "configs"


def config_folder() -> Path:
    """Where the configurations are: in the repository, or in the installed package."""
    for folder in (_CHECKOUT, _INSTALLED):
        if (folder / "highway-a.toml").exists():
            return folder
    raise UserError(f"the configurations are neither in {_CHECKOUT} nor in {_INSTALLED}; install verydeep again")


def read_recipe(name: str, recipe: Recipe) -> TrainConfig:
    """The configuration of a row of the tables."""
    folder = config_folder()
    return read_config((folder if recipe == "paper" else folder / recipe) / f"{name}.toml")
