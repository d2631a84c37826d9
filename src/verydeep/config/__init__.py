"""Configuration: frozen dataclasses to plain dictionaries and back, and dictionaries to TOML.

Dataclasses, or dictionaries read from JSON and TOML files, come in; the other form comes out. Errors name the key that
is unknown, missing or of the wrong type.
"""

from verydeep.config._codec import decode, former_names, from_dict, renamed, to_dict
from verydeep.config._toml import to_toml

__all__ = ["decode", "former_names", "from_dict", "renamed", "to_dict", "to_toml"]
