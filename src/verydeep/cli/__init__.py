"""The `verydeep` command.

Each command is a file of its own with a `main(arguments)`, imported only when it is called.
"""

import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from verydeep.errors import OtherProcessError, UserError, unknown

_COMMANDS = {
    "analyze": "look inside a run's network: gates, routing, lesions, how many layers it uses",
    "bench": "measure our networks against PyTorch, torch.compile and JAX on this machine",
    "data": "list, get, check and show the known datasets",
    "demo": "train a plain and a highway network of 50 layers side by side",
    "eval": "measure a run's network on its own or other data, class by class",
    "export": "write a run's network as ONNX, checked against the original",
    "models": "list the networks that can be created by name",
    "prune": "remove the layers that a run's network does not need",
    "report": "write one page about a run: training, gates, routing, which layers it needs",
    "reproduce": "the paper's tables and figures from our own runs",
    "runs": "list runs: how far they are, how they ended, what they reached",
    "search": "train with many settings at random, on one machine or many; what came of it",
    "train": "train a network, from a configuration file or a few options",
}
_USAGE = """usage: verydeep COMMAND [OPTIONS]

Train very deep networks, and see what every layer does.

{commands}

  verydeep COMMAND --help     the options of a command
  verydeep --version          the version
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 for something the user can mend."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # a path need not be text, and is printed all the same
    warnings.formatwarning = lambda message, *_others, **_more: f"verydeep: {message}\n"
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(*arguments) if arguments else _run("--help")
        sys.stdout.flush()  # at exit, Python would complain in its own words
        return code
    except BrokenPipeError:  # the reader of our output has had enough, as in `verydeep models | head`
        _let_go()
        return 141
    except OtherProcessError:  # which the other process reports
        return 2
    except (UserError, OSError) as error:  # OSError: standard output on a full disk, for one
        print(f"verydeep: {error}", file=sys.stderr)
        _let_go()
        return 2
    except KeyboardInterrupt:
        print("verydeep: interrupted", file=sys.stderr)
        return 130


def _run(command: str, *rest: str) -> int:
    if command in ("-h", "--help"):
        print(_USAGE.format(commands="\n".join(f"  {name:<10} {what}" for name, what in _COMMANDS.items())), end="")
        return 0
    if command == "--version":
        print(f"verydeep {import_module('verydeep').__version__}")
        return 0
    if command not in _COMMANDS:
        raise unknown("command", command, _COMMANDS)
    return int(import_module(f"verydeep.cli.commands._{command}").main(list(rest)) or 0)


def _let_go() -> None:
    """What standard output does not take goes nowhere, so that Python does not try once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
