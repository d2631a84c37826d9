"""The training recipes of the tables, read from their files.

`configs/NAME.toml` holds the authors' recipe as far as it is public (`paper`); `configs/fast/NAME.toml` holds our
recipe, which takes a tenth of the epochs (`fast`); `configs/short/NAME.toml` holds one that takes at most two and a
half hours on one core (`short`). Each file says what was inferred or changed.
"""

from typing import Literal

from verydeep.config import config_folder
from verydeep.training import TrainConfig, read_config

Recipe = Literal["paper", "fast", "short"]


def read_recipe(name: str, recipe: Recipe) -> TrainConfig:
    """Read the configuration of a row of the tables.

    Args:
        name: The name of the row, such as `highway-a`.
        recipe: `paper` for the authors' recipe as far as it is public, `fast` or `short` for ours.

    Example:
        >>> from verydeep.paper import read_recipe
        >>> read_recipe("highway-a", "paper").epochs, read_recipe("highway-a", "fast").epochs
        (400, 40)
    """
    folder = config_folder() if recipe == "paper" else config_folder() / recipe
    return read_config(folder / f"{name}.toml")
