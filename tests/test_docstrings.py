"""Every public class and function explains its parameters and shows an example, and the examples are right.

The names are those of `public_names.txt`, which `test_public_names.py` compares with the packages.
"""

import dataclasses
import doctest
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, Protocol

import pytest

NAMES = [line.rpartition(".")[::2] for line in Path(__file__).with_name("public_names.txt").read_text().splitlines()]
METHODS = (FunctionType, property, classmethod, staticmethod)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def is_documented_by_docstring(value: object) -> bool:
    """Constants, type aliases and modules are explained elsewhere."""
    return inspect.isclass(value) or inspect.isfunction(value)


def parameters(value: Any) -> list[str]:
    """The parameters that a caller can give."""
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.init]
    if inspect.isclass(value) and not issubclass(value, tuple):
        owner = next(base for base in value.__mro__ if "__init__" in vars(base))
        if not owner.__module__.startswith("verydeep.") or Protocol in value.__bases__:
            return []  # enumerations, exceptions, and base classes that leave __init__ to subclasses
    return [name for name in inspect.signature(value).parameters if name != "self"]


def documented(docstring: str) -> set[str]:
    """The names that the sections Args and Attributes explain."""
    names: set[str] = set()
    for section in re.findall(r"^(?:Args|Attributes):\n((?:[ ]+.*\n?|\n)+)", docstring, flags=re.M):
        for entry in re.findall(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?:", section, flags=re.M):
            names |= {name.strip().lstrip("*") for name in entry.split(",")}
    return names


def with_private_bases(value: Any) -> list[Any]:
    """A class, and the classes of ours it is made from that have no public name of their own."""
    public = {name for _, name in NAMES}
    bases = value.__mro__[1:] if inspect.isclass(value) else ()
    return [value, *(base for base in bases if base.__module__.startswith("verydeep.") and base.__name__ not in public)]


def docstrings(value: Any) -> Iterator[tuple[str, str]]:
    """Names and docstrings of a function, or of a class and its methods."""
    for part in with_private_bases(value):
        members = vars(part) if inspect.isclass(part) else {}
        ours = {name: member for name, member in members.items() if isinstance(member, METHODS)}
        for name, member in {"": part, **ours}.items():
            yield f"{part.__name__}.{name}".rstrip("."), member.__doc__ or ""


START_PROCESSES = {"Seeds", "resume_seeds", "run_bench", "search", "train_seeds"}


@pytest.mark.parametrize(
    ("module", "name"),
    [pytest.param(*pair, marks=[pytest.mark.slow] if pair[1] in START_PROCESSES else []) for pair in NAMES],
)
def test_the_examples_are_right(module: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = getattr(import_module(module), name)
    if not is_documented_by_docstring(value):
        return
    monkeypatch.chdir(tmp_path)
    runner, failures = doctest.DocTestRunner(optionflags=FLAGS, verbose=False), list[str]()
    for where, docstring in docstrings(value):  # each imports whatever it uses
        assert "+SKIP" not in docstring, where
        runner.run(doctest.DocTestParser().get_doctest(docstring, {}, where, None, None), out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_parameters_are_explained_and_an_example_is_given(module: str, name: str) -> None:
    value = getattr(import_module(module), name)
    if not is_documented_by_docstring(value):
        return
    docstring = inspect.cleandoc(value.__doc__ or "")
    assert not docstring.startswith(f"{name}("), "a docstring of its own, not the one that dataclass makes"
    assert [parameter for parameter in parameters(value) if parameter not in documented(docstring)] == []
    assert ">>> " in docstring, "an example"


def test_the_check_sees_what_is_missing() -> None:
    arguments = "Args:\n    x: One.\n        More: of it.\n    y, z: Two.\n    **rest: Others.\n"
    docstring = f"Does things.\n\n{arguments}\nReturns:\n    w: No."
    assert documented(docstring) == {"x", "y", "z", "rest"}
    assert documented("Is a thing.\n\nAttributes:\n    a: One.\n") == {"a"}
    assert parameters(lambda self, a, *b, c=1, **d: None) == ["a", "b", "c", "d"]
