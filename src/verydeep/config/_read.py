"""Reading configuration files: by name or path, with the files that they extend."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from verydeep.errors import UserError
from verydeep.files import read_toml

_PACKAGE = Path(__file__).parents[1]
_INSTALLED = _PACKAGE / "_configs"  # where the wheel has them
_CHECKOUT = _PACKAGE.parents[1] / "configs"
_BASE = "base"  # the folder of files that are only extended


def config_folder() -> Path:
    """The folder of the configurations that come with verydeep: in the repository or in the installed package."""
    for folder in (_CHECKOUT, _INSTALLED):
        if (folder / _BASE).is_dir():
            return folder
    raise UserError(f"the configurations are neither in {_CHECKOUT} nor in {_INSTALLED}; install verydeep again")


def list_configs() -> list[str]:
    """The names of all configurations that come with verydeep.

    Example:
        >>> from verydeep.config import list_configs
        >>> "highway50-mnist" in list_configs(), "fast/highway-a" in list_configs()
        (True, True)
    """
    folder = config_folder()
    paths = (path.relative_to(folder).with_suffix("") for path in folder.rglob("*.toml"))
    return sorted(path.as_posix() for path in paths if path.parts[0] != _BASE)


def find_config(name: str | Path) -> Path:
    """The file of a configuration.

    Args:
        name: The path of a TOML file, or the name of a configuration that comes with verydeep; see `list_configs`.

    Raises:
        UserError: There is no such file and no such configuration; the message names the nearest one.

    Example:
        >>> from verydeep.config import find_config
        >>> find_config("fast/highway-a").name
        'highway-a.toml'
        >>> find_config("highway50-mnst")
        Traceback (most recent call last):
        ...
        verydeep.errors.UserError: there is no configuration 'highway50-mnst'; did you mean 'highway50-mnist'?
    """
    path = Path(name)
    if path.is_file():
        return path
    if (shipped := _shipped(name)) is not None:
        return shipped
    if path.exists() and not path.is_dir():  # a pipe
        return path
    raise UserError(f"there is no configuration '{name}'{_near(name)}")


def _shipped(name: str | Path) -> Path | None:
    """The file of a configuration that comes with verydeep."""
    path = config_folder() / f"{name}.toml"
    return path if path.is_file() and ".." not in path.parts and not Path(name).is_absolute() else None


def _near(name: str | Path, folder: Path = Path()) -> str:
    """A hint at the configuration that was probably meant: a file next to the missing one, or one that we ship."""
    path = Path(name)
    beside = {file.name: str(path.with_name(file.name)) for file in (folder / path).parent.glob("*.toml")}
    shipped = {known: known for known in list_configs()}
    choices = [(_as_name(path), shipped), (path.name, beside)]
    for word, known in reversed(choices) if path.suffix else choices:
        longer = [name for name in known if word and name.startswith(word)]
        if near := longer or get_close_matches(word, known, n=1):
            return f"; did you mean '{known[near[0]]}'?"
    return "; give the path of a TOML file, or the name of a configuration such as highway50-mnist"


def _as_name(path: Path) -> str:
    """What a path would be called among our configurations: `fast/highway-a` for configs/fast/highway-a.toml."""
    parts = path.with_suffix("").parts if path.suffix == ".toml" else path.parts
    name = "/".join(parts[parts.index("configs") + 1 :] if "configs" in parts else parts)
    return name.lower().replace("_", "-")


def read_settings(name: str | Path) -> dict[str, Any]:
    """Read a configuration file, merged with the file that it extends.

    A file that says `extends = "other.toml"` takes every setting from there that it does not have itself. Tables are
    merged setting by setting; lists are replaced. `extends` is a path relative to the file, or the name of a
    configuration that comes with verydeep, and the other file may extend a third one.

    Args:
        name: A path, or the name of a configuration that comes with verydeep.

    Returns:
        The settings as plain values, without `extends`.

    Example:
        >>> from verydeep.config import read_settings
        >>> read_settings("highway50-mnist")["model"]
        {'name': 'highway-mlp', 'depth': 50, 'gate_bias': -3.0}
    """
    return _read(find_config(name), [])


def _read(path: Path, readers: list[Path]) -> dict[str, Any]:
    """Read a file that the last of `readers` extends, which the one before extends, and so on."""
    if path.resolve() in [reader.resolve() for reader in readers]:
        raise UserError(f"{readers[0]}: 'extends' goes round in a circle: {' -> '.join(map(str, [*readers, path]))}")
    values = read_toml(path)
    if "extends" not in values:
        return values
    other = values.pop("extends")
    if not isinstance(other, str) or not other:
        raise UserError(f"{path}: 'extends' must be the path or name of one other configuration, got {other!r}")
    return _merge(_read(_extended(path, other), [*readers, path]), values)


def _extended(path: Path, other: str) -> Path:
    beside = path.parent / other
    found = beside if beside.is_file() else _shipped(other)
    if found is None:
        raise UserError(f"{path}: 'extends' names '{other}', which does not exist{_near(other, path.parent)}")
    return found


def _merge(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The tables of both; where both have a value, the own one."""
    merged = dict(base)
    for key, value in own.items():
        under = merged.get(key)
        merged[key] = _merge(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return merged
