"""`verydeep completion`: scripts with which shells complete commands, options and their choices."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Literal

from verydeep.cli._options import Setting, option_names, positional, read_options, settings_of
from verydeep.terminal import echo

_BASH = """_verydeep() {
    local words
    words=$(verydeep completion words "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
    COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _verydeep verydeep
"""
_ZSH = f"autoload -U +X bashcompinit && bashcompinit\n{_BASH}"
_FISH = "complete -c verydeep -a '(verydeep completion words (commandline -opc)[2..] 2>/dev/null)'\n"


@dataclass(frozen=True)
class CompletionOptions:
    """Print a script that completes commands, options and their values in your shell with TAB.

    bash or zsh: add this line to ~/.bashrc or ~/.zshrc, with your shell's name: eval "$(verydeep completion bash)"

    fish: verydeep completion fish > ~/.config/fish/completions/verydeep.fish
    """

    shell: Annotated[Literal["bash", "zsh", "fish"], positional("bash|zsh|fish")]
    """Your shell."""


OPTIONS = {"completion": CompletionOptions}


def main(arguments: list[str]) -> None:
    """Run the command."""
    if arguments[:1] == ["words"]:  # what the scripts call
        echo("\n".join(words_after(arguments[1:])))
        return
    options = read_options(CompletionOptions, "completion", arguments)
    echo({"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[options.shell], end="")


def words_after(line: list[str]) -> list[str]:
    """The words that can follow a command line without its last, unfinished word."""
    from verydeep.cli import COMMANDS

    if not line or line == ["help"]:
        return [*COMMANDS, "help", "--help", "--version"]
    if line[0] not in COMMANDS:
        return []
    commands = import_module(f"verydeep.cli.commands._{line[0]}").OPTIONS
    inner = [name.split()[1] for name in commands if " " in name]
    if len(line) > 1 and line[1] in inner:
        options = commands[f"{line[0]} {line[1]}"]
    elif line[0] in commands:
        options = commands[line[0]]
    else:
        return [*inner, "--help"]
    settings = settings_of(options)
    named = [setting for setting in settings if not setting.argument.positional]
    for setting in named:
        if line[-1] in setting.names and not setting.is_flag:
            return _choices(setting)
    values = [word for setting in settings if setting.argument.positional for word in _choices(setting)]
    first = inner if len(line) == 1 else []
    negated = [name for name in option_names(settings) if name.startswith("--no-")]
    return [*first, *values, *(name for setting in named for name in setting.names), *negated, "--help"]


def _choices(setting: Setting) -> list[str]:
    """The values of an option that can be listed; none for files, numbers and text."""
    if setting.name in ("data.source", "data", "what") or setting.owner.__name__.startswith("Data"):
        from verydeep.data import KNOWN_NAMES

        if setting.name == "what":
            from verydeep.config import list_configs

            return [*KNOWN_NAMES, *list_configs()]
        return list(KNOWN_NAMES) if setting.name in ("data.source", "data", "name") else []
    if setting.name == "model.name" or setting.owner.__name__ == "ModelsOptions":
        from verydeep.models import list_models

        return list(dict.fromkeys(model.name for model in list_models()))
    hints = [setting.hint, *typing.get_args(setting.hint)]
    return [str(value) for hint in hints if typing.get_origin(hint) is Literal for value in typing.get_args(hint)]
