"""Command-line options: a dataclass per command, whose fields are the options.

A field of a nested dataclass is an option with a dotted name, such as `--optim.lr`, and may be given without its prefix
(`--lr`) where only one option ends in that name. Every mistake becomes a `UserError` that names the option.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from verydeep.errors import UserError
from verydeep.redact import redact
from verydeep.terminal import echo
from verydeep.words import is_number

Options = TypeVar("Options")
_NO_DEFAULT = dataclasses.MISSING
_SIMILAR = 0.65  # below, --gpu would suggest --guided
_SYNONYMS = {  # what other programs call some of our options
    "layers": "depth",
    "num-layers": "depth",
    "hidden-size": "width",
    "hidden": "width",
    "units": "width",
    "gpu": "device",
    "cuda": "device",
    "output": "folder",
    "out": "folder",
    "delete": "remove",
}


@dataclass(frozen=True)
class Argument:
    """How a field is given on the command line; the annotation of a field that needs more than its name and type."""

    metavar: str | None = None
    text: str | None = None
    aliases: tuple[str, ...] = ()
    positional: bool = False
    inline: bool = False
    without: tuple[str, ...] = ()


def option(metavar: str, text: str | None = None, aliases: tuple[str, ...] = ()) -> Argument:
    """Annotate a field that is an option.

    Args:
        metavar: What --help shows for the value.
        text: The help text; by default, the docstring below the field.
        aliases: Further names, such as `-o`.
    """
    return Argument(metavar, text, aliases)


def positional(metavar: str, text: str | None = None) -> Argument:
    """Annotate a field that is given without a name; a tuple takes any number of values."""
    return Argument(metavar, text, positional=True)


def without(*fields: str) -> Argument:
    """Annotate a nested dataclass some of whose fields are no options of the command."""
    return Argument(without=fields)


INLINE = Argument(inline=True)  # the fields of a nested dataclass, without the name of this field before them

RunFolder = Annotated[Path, positional("RUN", "The run's folder, its name in verydeep runs, or pretrained:NAME.")]
DataRoot = Annotated[
    Path | None, option("FOLDER", "Where known datasets are stored; by default, $VERYDEEP_DATA or the user's cache.")
]
Quiet = Annotated[bool, option("", "Print nothing but errors.")]
Threads = Annotated[int | None, option("N", "Use N CPU threads; by default, one per core.")]
Json = Annotated[bool, option("", "Print JSON instead of tables.")]


@dataclass(frozen=True)
class Setting:
    """One option of a command.

    Attributes:
        name: The path of fields, such as `optim.lr`.
        names: Every way to write it, the shortest first: `--lr`, `--optim.lr`.
        hint: The type of its value.
        default: The value if it is not given, or `dataclasses.MISSING`.
        argument: What its annotation says.
        owner: The dataclass that has the field.
    """

    name: str
    names: tuple[str, ...]
    hint: Any
    default: Any
    argument: Argument
    owner: type

    @property
    def is_flag(self) -> bool:
        """Whether the option takes no value."""
        return self.hint is bool

    @property
    def is_list(self) -> bool:
        """Whether the option takes any number of values."""
        return typing.get_origin(self.hint) is tuple

    @property
    def metavar(self) -> str:
        """What stands for the value in help texts."""
        if self.argument.metavar is not None:
            return self.argument.metavar
        if self.is_list:
            return f"{_stand_in(typing.get_args(self.hint)[0])},..."
        return "" if self.is_flag else "|".join(dict.fromkeys(map(_stand_in, _alternatives(self.hint))))


def read_options(
    options: type[Options], command: str, arguments: Sequence[str], default: Options | None = None
) -> Options:
    """Parse the arguments of a command, or print its help and exit if they contain --help.

    Args:
        options: The dataclass to fill; its docstring is the beginning of the help.
        command: The command's name, such as `search show`.
        arguments: The arguments after the name.
        default: Values of options that are not given; by default, those of the dataclass.
    """
    settings = settings_of(options, default)
    if "-h" in arguments or "--help" in arguments:
        from verydeep.cli._help import help_text

        echo(help_text(options, command, settings), end="")
        raise SystemExit(0)
    return _fill(options, default, given_options(settings, command, arguments))


def given_options(settings: Sequence[Setting], command: str, arguments: Sequence[str]) -> dict[str, Any]:
    """The values of the options that the arguments give, by the names of the settings, such as `optim.lr`."""
    try:
        return _parse(settings, [argument for argument in arguments if argument not in ("-h", "--help")])
    except UserError as error:
        raise UserError(f"{redact(*str(error).split(' '))} (see verydeep {command} --help)") from None


def settings_of(options: type, default: object = None) -> list[Setting]:
    """List the options of a dataclass in the order of its fields, those of nested dataclasses included."""
    found = list(_flatten(options, default, ""))
    full = [setting.name for setting in found]
    short = {name: _short_forms(name, full) for name in full}
    return [
        dataclasses.replace(s, names=tuple(_dashed(n) for n in (*short[s.name], s.name)) + s.argument.aliases)
        for s in found
    ]


def with_option_names(message: str, settings: Sequence[Setting]) -> str:
    """A message about settings as one about the options of a command: `set data.decimal = ','` is `add --decimal ','`.

    Args:
        message: The message.
        settings: The options of the command.
    """
    names = {setting.name: setting.names[0] for setting in settings}

    def option_for(found: re.Match[str]) -> str:
        verb, name, link = found.groups()
        if name not in names:
            return found[0]
        add = "Add " if verb and verb[0] == "S" else "add " if verb else ""
        return add + names[name] + {None: "", " = ": " ", " to ": " with "}[link]

    return re.sub(r"\b([Ss]et )?(data(?:\.[a-z_]+)+)( = | to (?=one of|['\[]))?", option_for, message)


def option_names(settings: Sequence[Setting]) -> list[str]:
    """Every way to write each option, `--no-` before those that can be switched off."""
    return list(_by_name(settings))


def value_before(settings: Sequence[Setting], arguments: Sequence[str], value: str) -> UserError | None:
    """The error for a value that follows the single value of an option, as in `--target a b`."""
    names = _by_name(settings)
    place = list(arguments).index(value)
    name = arguments[place - 2] if place >= 2 else ""
    before = names.get(name.replace("_", "-"))
    if before is None or before[0].is_flag or before[0].is_list:
        return None
    first = arguments[place - 1]
    return UserError(
        f"{name} takes one value, but '{value}' follows '{first}'; "
        f"a value with spaces needs quotes: {name} '{first} {value}'"
    )


def _flatten(options: type, default: object, prefix: str, left_out: Sequence[str] = ()) -> Iterator[Setting]:
    hints = typing.get_type_hints(options, include_extras=True)
    for f in dataclasses.fields(options):
        if f.name in left_out:
            continue
        hint, argument = unwrap(hints[f.name])
        value = _default_of(f) if default is None else getattr(default, f.name)
        if dataclasses.is_dataclass(hint):
            yield from _flatten(
                typing.cast("type", hint),
                None if value is _NO_DEFAULT else value,
                prefix if argument.inline else f"{prefix}{f.name}.",
                argument.without,
            )
        else:
            yield Setting(f"{prefix}{f.name}", (), hint, value, argument, options)


def unwrap(hint: Any) -> tuple[Any, Argument]:  # noqa: ANN401 - a type
    """Separate a type from what its annotation says about the command line."""
    argument = Argument()
    if typing.get_origin(hint) is Annotated:
        hint, *metadata = typing.get_args(hint)
        argument = next((m for m in metadata if isinstance(m, Argument)), argument)
    return hint, argument


def _default_of(f: dataclasses.Field[Any]) -> Any:  # noqa: ANN401 - of any type
    return f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default


def _short_forms(name: str, names: Sequence[str]) -> list[str]:
    """The endings of a dotted name that are unique, the shortest first; a group stands for its name or source."""
    parts = name.split(".")
    endings = [".".join(parts[start:]) for start in range(len(parts) - 1, 0, -1)]
    short = [end for end in endings if not any(n == end or (n != name and n.endswith(f".{end}")) for n in names)]
    if len(parts) == 2 and parts[1] in ("name", "source"):
        short.insert(0, parts[0])
    return short


def _dashed(name: str) -> str:
    """The option of a field; one named after a keyword of Python, such as `continue_`, is written without the dash."""
    return f"--{name.rstrip('_').replace('_', '-')}"


def _negated(name: str) -> str:
    """`--optim.no-nesterov` for `--optim.nesterov`; `--no-optim.nesterov` is accepted, too."""
    head, dot, last = name.removeprefix("--").rpartition(".")
    return f"--{head}{dot}no-{last}"


def _by_name(settings: Sequence[Setting]) -> dict[str, tuple[Setting, bool]]:
    """Every way to write an option, with what it makes of a flag."""
    names: dict[str, tuple[Setting, bool]] = {}
    for setting in settings:
        if not setting.argument.positional:
            names |= dict.fromkeys(setting.names, (setting, True))
            if setting.is_flag:
                names |= dict.fromkeys(map(_negated, setting.names), (setting, False))
    return names


def _parse(settings: Sequence[Setting], arguments: Sequence[str]) -> dict[str, Any]:
    """The values that the arguments give, by the names of the settings."""
    names = _by_name(settings)
    given: dict[str, Any] = {}
    free: list[str] = []
    trailing: tuple[Setting, int] | None = None  # a list that ends the line, and how many values it took there
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            free, rest = free + rest, []
        elif not argument.startswith("-") or argument == "-":
            free.append(argument)
        else:
            written, equals, value = argument.partition("=")
            setting, flag = _find(written, names, settings)
            if setting.is_flag:
                if equals:
                    raise UserError(f"{written} takes no value")
                given[setting.name] = flag
            elif setting.is_list:
                taken = [value] if equals else _take_while_values(rest)
                trailing = (setting, len(taken)) if not rest and not equals else None
                items = [item for text in taken for item in (text.split(",") if text.strip(",") else [""])]
                kind = typing.get_args(setting.hint)[0]
                given[setting.name] = (*given.get(setting.name, ()), *(_convert(kind, i, written) for i in items))
            else:
                if not equals and (not rest or _is_option(rest[0], names)):
                    raise UserError(f"{written} needs a value: {written} {setting.metavar}")
                given[setting.name] = _convert(setting.hint, value if equals else rest.pop(0), written)
    return given | _positionals(settings, free, given, trailing, arguments)


def _take_while_values(rest: list[str]) -> list[str]:
    taken = []
    while rest and (not rest[0].startswith("-") or is_number(rest[0])):
        taken.append(rest.pop(0))
    return taken


def _is_option(argument: str, names: Mapping[str, object]) -> bool:
    return argument.partition("=")[0].replace("_", "-") in names or argument.startswith("--")


def _find(written: str, names: dict[str, tuple[Setting, bool]], settings: Sequence[Setting]) -> tuple[Setting, bool]:
    """The option that a name on the command line stands for."""
    name = written.replace("_", "-")
    if name.startswith("--no-") and name not in names:  # --no-optim.nesterov
        name = _negated(name.replace("no-", "", 1))
    if name in names:
        return names[name]
    last = name.removeprefix("--")
    candidates = [setting.names[-1] for setting in settings if setting.names[-1].endswith(f".{last}")]
    if len(candidates) > 1:
        raise UserError(f"{written} is not unique: give {_either(candidates)}")
    near = _nearest(name, names)
    raise UserError(f"unknown option {written}" + (f"; did you mean {near}?" if near else ""))


def _nearest(name: str, names: dict[str, tuple[Setting, bool]]) -> str | None:
    """The option that a wrong name probably means: of the same last part, meaning or initials, or spelt similarly."""
    last = name.rpartition(".")[2].lstrip("-").lower()
    by_initials = {_initials(known): known for known in reversed(names) if "-" in known[2:] and "." not in known}
    for wanted in (last, _SYNONYMS.get(last, ""), _initials(last) if "-" in last else ""):
        if f"--{wanted}" in names:
            return f"--{wanted}"
    near = get_close_matches(name, names, n=1, cutoff=_SIMILAR)
    return by_initials.get(last) or (near[0] if near else None)


def _initials(name: str) -> str:
    return "".join(word[:1] for word in name.removeprefix("--").split("-"))


def _positionals(
    settings: Sequence[Setting],
    free: list[str],
    given: dict[str, Any],
    trailing: tuple[Setting, int] | None,
    arguments: Sequence[str],
) -> dict[str, Any]:
    """The values without a name, and the error for those that are missing or too many."""
    places = [setting for setting in settings if setting.argument.positional]
    required = sum(setting.default is _NO_DEFAULT for setting in places)
    if trailing is not None and 0 < required - len(free) < trailing[1]:  # --only gates RUN
        name, count = trailing[0].name, required - len(free)
        given[name], free = given[name][:-count], [*free, *arguments[-count:]]
    values: dict[str, Any] = {}
    for setting in places:
        if setting.is_list and free:
            kind = typing.get_args(setting.hint)[0]
            values[setting.name], free = tuple(_convert(kind, text, setting.metavar) for text in free), []
        elif free:
            values[setting.name] = _convert(setting.hint, free.pop(0), setting.metavar)
    if free:
        raise value_before(settings, arguments, free[0]) or UserError(f"unexpected '{free[0]}'")
    missing = [
        setting.metavar if setting.argument.positional else f"{setting.names[0]} {setting.metavar}"
        for setting in settings
        if setting.default is _NO_DEFAULT and setting.name not in given | values
    ]
    if missing:
        raise UserError(f"missing: {', '.join(missing)}")
    return values


def _alternatives(hint: Any) -> list[Any]:  # noqa: ANN401 - a type
    """The types of a union, without None; a Literal counts as one."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return [a for part in typing.get_args(hint) if part is not types.NoneType for a in _alternatives(part)]
    return [hint]


def _stand_in(hint: Any) -> str:  # noqa: ANN401 - a type
    if typing.get_origin(hint) is Literal:
        return "|".join(map(str, typing.get_args(hint)))
    return {int: "N", float: "X", Path: "PATH"}.get(hint, "TEXT")


def _convert(hint: Any, text: str, written: str) -> Any:  # noqa: ANN401 - of the type that the hint says
    alternatives = _alternatives(hint)
    if alternatives != [hint] and text.lower() == "none" and not {str, Path} & set(alternatives):
        return None
    for kind in alternatives:
        if typing.get_origin(kind) is Literal:
            choice = next((value for value in typing.get_args(kind) if str(value) == text), None)
            if choice is not None:
                return choice
        elif kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        else:
            return kind(text)
    raise UserError(f"{written} must be {_wanted(alternatives)}, not '{text}'")


def _either(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _wanted(alternatives: Sequence[Any]) -> str:
    words: list[str] = []
    for kind in alternatives:
        if typing.get_origin(kind) is Literal:
            words += map(str, typing.get_args(kind))
        else:
            words.append("a whole number" if kind is int else "a number")
    return _either(words)


def _fill(options: type[Options], default: Options | None, given: Mapping[str, Any], prefix: str = "") -> Options:
    """Build the dataclass from the values that were given and the defaults."""
    hints = typing.get_type_hints(options, include_extras=True)
    values = {}
    for f in dataclasses.fields(options):  # type: ignore[arg-type]
        hint, argument = unwrap(hints[f.name])
        start = _default_of(f) if default is None else getattr(default, f.name)
        if dataclasses.is_dataclass(hint):
            inner = prefix if argument.inline else f"{prefix}{f.name}."
            values[f.name] = _fill(typing.cast("type", hint), None if start is _NO_DEFAULT else start, given, inner)
        else:
            values[f.name] = given.get(f"{prefix}{f.name}", start)
    return options(**values)
