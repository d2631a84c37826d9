"""The `verydeep` command: dataclasses in, calls down.

Each command is a dataclass with a `run` method in a file of its own; its fields are the command's options. What a
command needs is imported inside `run`, so that `verydeep --help` never waits for torch.
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import tyro

from verydeep.cli._data import Data
from verydeep.cli._models import Models
from verydeep.errors import UserError

Command = Annotated[Models, tyro.conf.subcommand("models")] | Annotated[Data, tyro.conf.subcommand("data")]
_CONFIG = (tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 for something the user can mend."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        import verydeep

        print(f"verydeep {verydeep.__version__}")
        return 0
    try:
        command = tyro.cli(
            Command, prog="verydeep", description=_DESCRIPTION, args=arguments or ["--help"], config=_CONFIG
        )
        command.run()
    except UserError as error:
        print(f"verydeep: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("verydeep: interrupted", file=sys.stderr)
        return 130
    return 0


_DESCRIPTION = "Train very deep networks, and see what every layer does."
