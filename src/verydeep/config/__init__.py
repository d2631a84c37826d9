"""Configuration: frozen dataclasses to plain dictionaries and back, and dictionaries to TOML.

Dataclasses, or dictionaries read from JSON and TOML files, come in; the other form comes out. Errors name the key that
is unknown, missing or of the wrong type.
"""

from verydeep.config._codec import (
    decode as decode,
    former_names as former_names,
    from_dict,
    renamed as renamed,
    to_dict,
)
from verydeep.config._toml import to_toml

__all__ = ["from_dict", "to_dict", "to_toml"]
