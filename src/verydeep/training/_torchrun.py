"""What torchrun tells each process that it starts, in environment variables."""

import os

from verydeep.errors import UserError


def world_size() -> int:
    """How many processes train together."""
    return _whole_number("WORLD_SIZE", default=1, least=1)


def local_rank() -> int:
    """The number of this process on its machine."""
    return _whole_number("LOCAL_RANK", default=0, least=0)


def _whole_number(name: str, default: int, least: int) -> int:
    text = os.environ.get(name, str(default))
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise UserError(
            f"the environment variable {name} must be a whole number from {least} on, as torchrun sets it; got '{text}'"
        )
    return int(text)
