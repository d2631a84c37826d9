"""The text of `verydeep COMMAND --help`, made from the dataclass of the command's options."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from verydeep.cli._options import Setting

_NAMES = 24  # characters of the column of names
_WIDEST = 100


def help_text(options: type, command: str, settings: Sequence[Setting]) -> str:
    """The usage, what the command does, and every option with its meaning and default."""
    width = min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)
    places = [setting for setting in settings if setting.argument.positional]
    others = [setting for setting in settings if not setting.argument.positional]
    words = [_usage(setting) for setting in places]
    words += [f"{s.names[0]} {s.metavar}" for s in others if s.default is dataclasses.MISSING]
    lines = [f"usage: verydeep {' '.join([command, *words])} [OPTIONS]", "", *_description(options, width), ""]
    for setting in places:
        lines += _entry(setting.metavar, meaning(setting), width)
    lines += [""] if places else []
    groups = dict.fromkeys(setting.name.rpartition(".")[0] for setting in others)
    for group in groups:
        members = [setting for setting in others if setting.name.rpartition(".")[0] == group]
        lines += _heading(options, group, members, width)
        for setting in members:
            lines += _entry(
                f"{_shown_names(setting, setting.owner is not options)} {setting.metavar}", meaning(setting), width
            )
        if not group:
            lines += _entry("-h, --help", "Show this help.", width)
        lines.append("")
    return "\n".join(lines)


@cache
def field_texts(owner: type) -> dict[str, str]:
    """What the class says about each field: the string below it, or its entry in the docstring's `Attributes:`."""
    texts = _attributes(owner.__doc__ or "")
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    for node, following in pairwise(body):
        match node, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = _plain(text)
    return texts


def _attributes(docstring: str) -> dict[str, str]:
    _, _, section = inspect.cleandoc(docstring).partition("Attributes:\n")
    entries = re.split(r"^ {4}(\w+): ", section, flags=re.MULTILINE)[1:]
    return {name: _plain(text.split("\n\n")[0]) for name, text in zip(entries[::2], entries[1::2], strict=True)}


def _plain(text: str) -> str:
    """Text without the marks of code: `"paper"` becomes paper."""
    return re.sub(r'`"?([^`"]*)"?`', r"\1", " ".join(text.split()))


def _usage(setting: Setting) -> str:
    words = f"{setting.metavar} ..." if setting.is_list else setting.metavar
    return words if setting.default is dataclasses.MISSING else f"[{words}]"


def _description(options: type, width: int) -> list[str]:
    """The docstring; a list has lines with a name, two spaces or more, and a text."""
    paragraphs = inspect.cleandoc(options.__doc__ or "").split("Attributes:")[0].strip().split("\n\n")
    lines: list[str] = []
    for paragraph in paragraphs:
        pairs = re.findall(r"^ *(\S.*?) {2,}(.+)$", paragraph, flags=re.MULTILINE)
        for name, text in pairs:
            lines += _entry(name, text, width)
        if not pairs:
            lines += textwrap.wrap(_plain(paragraph), width)
        lines.append("")
    return lines[:-1]


def _heading(options: type, group: str, members: Sequence[Setting], width: int) -> list[str]:
    if not group:
        return [_bold("Options")]
    text = _group_text(options, group).rstrip(".")
    example = next((s for s in members if s.names[0] == f"--{s.names[-1].rpartition('.')[2]}"), None)
    full = "" if example is None else f" ({example.names[0]} is short for {example.names[-1]})"
    return [_bold(line) for line in textwrap.wrap(f"{text}{full}", width)]


def _group_text(options: type, group: str) -> str:
    """What the fields that lead to a group say about it."""
    from verydeep.cli._options import unwrap

    owner: type = options
    text = group
    for name in group.split("."):
        for candidate in _with_inlined(owner):
            if name in {f.name for f in dataclasses.fields(candidate)}:
                text = field_texts(candidate).get(name, name)
                owner, _ = unwrap(inspect.get_annotations(candidate, eval_str=True)[name])
                break
    return text


def _with_inlined(owner: type) -> list[type]:
    """The class, and those whose fields it has without a prefix."""
    from verydeep.cli._options import unwrap

    hints = inspect.get_annotations(owner, eval_str=True)
    pairs = [unwrap(hint) for hint in hints.values()]
    return [owner, *(hint for hint, argument in pairs if argument.inline)]


def _shown_names(setting: Setting, negatable: bool) -> str:
    """The shortest name, and aliases such as -o; a flag that can be switched off shows how."""
    name = setting.names[0]
    if setting.is_flag and (setting.default is True or negatable):
        name = re.sub(r"--(.*\.)?", r"--\1[no-]", name)
    return ", ".join([*setting.argument.aliases, name])


def meaning(setting: Setting) -> str:
    """What an option does, with its default unless the text says it."""
    text = setting.argument.text or field_texts(setting.owner).get(setting.name.rpartition(".")[2], "")
    default = setting.default
    if default is True and "default" not in text:
        return f"{text} (default: on)"
    if isinstance(default, bool) or default in (None, (), "", dataclasses.MISSING) or "default" in text:
        return text
    if isinstance(default, float):
        default = f"{default:g}"
    elif isinstance(default, tuple):
        default = ",".join(map(str, default))
    return f"{text} (default: {default})"


def _entry(names: str, text: str, width: int) -> list[str]:
    names = f"  {names.rstrip()}"
    text = re.sub(r"\(default: (\S+)\)$", "(default:\u00a0\\1)", text)  # not broken
    lines = textwrap.wrap(text, max(width - _NAMES, 20), break_long_words=False, break_on_hyphens=False)
    lines = [line.replace("\u00a0", " ") for line in lines]
    indented = [f"{'':{_NAMES}}{line}" for line in lines]
    if len(names) + 2 > _NAMES or not indented:
        return [*textwrap.wrap(names, width, subsequent_indent="      ", break_on_hyphens=False), *indented]
    return [f"{names:{_NAMES}}{lines[0]}", *indented[1:]]


def _bold(text: str) -> str:
    coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return f"\x1b[1m{text}\x1b[0m" if coloured else text
