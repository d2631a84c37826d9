"""The training recipes of the tables, read from their files.

`configs/NAME.toml` holds the authors' recipe as far as they published it (`paper`); `configs/fast/NAME.toml` holds our
recipe, which takes a tenth of the epochs (`fast`). Each file says what was inferred or changed.
"""

from pathlib import Path
from typing import Literal

from verydeep.errors import UserError
from verydeep.training import TrainConfig, read_config

Recipe = Literal["paper", "fast"]
_PACKAGE = Path(__file__).parents[1]
_INSTALLED = _PACKAGE / "_configs"  # the wheel ships them here
_CHECKOUT = _PACKAGE.parents[1] / "configs"


def config_folder() -> Path:
    """The folder of configurations: that of the repository, or that of the installed package."""
    for folder in (_CHECKOUT, _INSTALLED):
        if (folder / "highway-a.toml").exists():
            return folder
    raise UserError(f"the configurations are neither in {_CHECKOUT} nor in {_INSTALLED}; install verydeep again")


def read_recipe(name: str, recipe: Recipe) -> TrainConfig:
    """Read the configuration of a row of the tables."""
    folder = config_folder()
    return read_config((folder if recipe == "paper" else folder / recipe) / f"{name}.toml")
