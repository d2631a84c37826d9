"""Frozen dataclasses to plain dictionaries (JSON, TOML) and back, with errors that name the key at fault."""

from verydeep.config._codec import decode, former_names, from_dict, renamed, to_dict
from verydeep.config._toml import to_toml

__all__ = ["decode", "former_names", "from_dict", "renamed", "to_dict", "to_toml"]
