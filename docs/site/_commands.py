"""Pages about every command, made from the options' dataclasses, like `verydeep COMMAND --help`."""

import dataclasses
import inspect
import re
from importlib import import_module

from verydeep.cli import COMMANDS
from verydeep.cli._help import _group_text, _shown_names, _usage, meaning
from verydeep.cli._options import Setting, settings_of


def command_pages() -> dict[str, str]:
    """The pages by their names: the list of commands, and one for each."""
    rows = "".join(f"| [`verydeep {name}`](commands/{name}.md) | {what} |\n" for name, what in COMMANDS.items())
    tree = "".join(f"commands/{name}\n" for name in COMMANDS)
    pages = {
        "commands": "# Every command and option\n\n"
        "`verydeep help COMMAND` prints the same. [The command line](../commands.md) says how options are written.\n\n"
        f"| command | what it does |\n|---|---|\n{rows}\n```{{toctree}}\n:hidden:\n\n{tree}```\n"
    }
    for name in COMMANDS:
        options = import_module(f"verydeep.cli.commands._{name}").OPTIONS
        parts = [
            _part(command, of, f"{'#' * (1 + (command != name and len(options) > 1))}")
            for command, of in options.items()
        ]
        title = "" if name in options else f"# verydeep {name}\n\n{COMMANDS[name].capitalize()}.\n\n"
        pages[f"commands/{name}"] = title + "\n".join(parts)
    return pages


def _part(command: str, options: type, marks: str) -> str:
    """What a command does, and its options by groups."""
    settings = settings_of(options)
    places = [setting for setting in settings if setting.argument.positional]
    others = [setting for setting in settings if not setting.argument.positional]
    required = [f"{s.names[0]} {s.metavar}" for s in others if s.default is dataclasses.MISSING]
    usage = " ".join(["verydeep", command, *map(_usage, places), *required, "[OPTIONS]"])
    text = f"{marks} verydeep {command}\n\n```text\n{usage}\n```\n\n{_description(options)}\n"
    if places:
        text += _table("argument", [(setting.metavar, meaning(setting)) for setting in places])
    for group in dict.fromkeys(setting.name.rpartition(".")[0] for setting in others):
        members = [setting for setting in others if setting.name.rpartition(".")[0] == group]
        if group:
            text += f"\n{marks}# {_group_text(options, group).rstrip('.')}\n"
        text += "\n" + _table("option", [(_names(s, s.owner is not options), meaning(s)) for s in members])
    return text


def _description(options: type) -> str:
    """The docstring; a list of names and texts becomes a table."""
    paragraphs = inspect.cleandoc(options.__doc__ or "").split("Attributes:")[0].strip().split("\n\n")
    parts = []
    for paragraph in paragraphs:
        pairs = re.findall(r"^ *(\S.*?) {2,}(.+)$", paragraph, flags=re.MULTILINE)
        parts.append(_table("name", pairs) if pairs else _escaped(paragraph) + "\n")
    return "\n".join(parts)


def _names(setting: Setting, negatable: bool) -> str:
    return f"{_shown_names(setting, negatable)} {setting.metavar}".strip()


def _table(head: str, rows: list[tuple[str, str]]) -> str:
    lines = (f"| `{name.replace('|', chr(92) + '|')}` | {_escaped(text)} |\n" for name, text in rows)
    return f"| {head} | |\n|---|---|\n{''.join(lines)}"


def _escaped(text: str) -> str:
    """The text in Markdown, with options as code, so that they do not break at a hyphen."""
    parts = text.split("`")
    for number in range(0, len(parts), 2):  # the others are code already
        escaped = re.sub(r"([|<>*_$\[\]])", r"\\\1", parts[number])
        parts[number] = re.sub(r"(?<![\w-])--[a-z]+(?:[-.][a-z]+)*", r"`\g<0>`", escaped)
    return "`".join(parts)
