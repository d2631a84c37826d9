"""Frozen dataclasses to plain dictionaries (JSON, TOML) and back, with errors that name the key at fault."""

from verydeep.config._codec import decode, from_dict, to_dict

__all__ = ["decode", "from_dict", "to_dict"]
