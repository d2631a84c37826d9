"""The command line: `main` takes the arguments after `verydeep`, runs one command and returns its exit code.

Each command is a file in `commands` with a `main(arguments)` and its `OPTIONS`, imported only when the command is
called, so that `verydeep --help` imports nothing heavy. `views` prints results and progress. Errors that a user can fix
take one line.
"""

import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from verydeep.errors import OtherProcessError, UserError, unknown
from verydeep.redact import redact_text
from verydeep.terminal import echo, without_controls

_LONGEST = 4000  # characters of a message

COMMANDS = {
    "analyze": "see which layers matter: of a run, or of a network of yours",
    "attend": "learn which feature maps a network attends to (dasNet)",
    "bench": "compare the speed with PyTorch, torch.compile and JAX",
    "compare": "compare runs: settings, accuracy, time and curves",
    "completion": "complete commands and options in your shell with TAB",
    "data": "list, download, check and show the known datasets",
    "demo": "find out how deep a network must be for MNIST, in three minutes",
    "depth": "find out how deep a network must be for your data",
    "eval": "evaluate a run's network, class by class",
    "explore": "write a page to play with a run's network",
    "export": "export a run to ONNX, for programs without PyTorch",
    "models": "list the networks that can be created by name",
    "predict": "predict for new rows or images with a run's network",
    "prune": "remove the layers that a run's network does not need",
    "report": "write an HTML page about a run",
    "reproduce": "reproduce the paper's tables and figures",
    "runs": "list or remove runs",
    "schema": "print a JSON schema of configuration files, for editors",
    "search": "search over training settings, on one machine or many",
    "train": "train a network on your data or from a configuration",
    "worker": "train for a study that was started here or on another machine",
}
_USAGE = """usage: verydeep COMMAND [OPTIONS]

Train very deep networks and see what every layer does.

{commands}

  verydeep help COMMAND        the options of a command (also COMMAND --help)
  verydeep completion --help   completion of commands and options with TAB
  verydeep --version           the version

Start with verydeep demo, or with your own table:
  verydeep depth FILE.csv --target COLUMN
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 for an error that the user can fix."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # paths that are not valid text are printed unchanged
    warnings.formatwarning = lambda message, *_others, **_more: f"verydeep: note: {_printable(message)}\n"
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(*arguments) if arguments else _run("--help")
        sys.stdout.flush()  # while an error can still be handled; at exit, Python would print a traceback
        return code
    except BrokenPipeError:  # the reader has closed the pipe, as in `verydeep models | head`
        _discard_output()
        return 141
    except OtherProcessError:  # the other process reports it
        return 2
    except (UserError, OSError) as error:  # OSError: for example, standard output on a full disk
        echo(f"verydeep: {_printable(error)}", file=sys.stderr)
        _discard_output()
        return 2
    except MemoryError as error:
        echo(f"verydeep: not enough memory{': ' if str(error) else ''}{str(error)[:200]}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        echo("verydeep: interrupted", file=sys.stderr)
        return 130


def _run(command: str, *rest: str) -> int:
    if command == "help" and rest:
        command, rest = rest[0], (*rest[1:], "--help")
    if command in ("-h", "--help", "help"):
        echo(_USAGE.format(commands="\n".join(f"  {name:<11} {what}" for name, what in COMMANDS.items())), end="")
        return 0
    if command in ("-v", "-V", "--version", "version"):
        echo(f"verydeep {import_module('verydeep').__version__}")
        return 0
    if command == "--completion":
        command = "completion"
    if command not in COMMANDS:
        raise unknown("command", command, COMMANDS)
    return int(import_module(f"verydeep.cli.commands._{command}").main(list(rest)) or 0)


def _printable(message: object) -> str:
    text = without_controls(redact_text(str(message)))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


def _discard_output() -> None:
    """Send what standard output does not accept to /dev/null, so that Python does not try again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
