"""What modules take and return: tensors and other values in tuples, lists and dictionaries, each at a path."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Path = tuple[int | str, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:  # noqa: ANN401 - whatever a module takes
    """Every value that is not a tuple, list or dictionary, with its path."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value):
            yield from leaves(item, (*path, number))
    else:
        yield path, value


def map_leaves(function: Callable[[Path, Any], Any], value: Any, path: Path = ()) -> Any:  # noqa: ANN401
    """The same structure, of the same classes, with a function of path and value applied to every leaf."""
    if isinstance(value, Mapping):
        items = {key: map_leaves(function, item, (*path, key)) for key, item in value.items()}
        return items if type(value) is dict else type(value)(**items)  # such as the output classes of transformers
    if isinstance(value, tuple | list):
        parts = [map_leaves(function, item, (*path, number)) for number, item in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return function(path, value)


def pick(value: Any, path: Path) -> Any:  # noqa: ANN401
    """The leaf at a path."""
    for key in path:
        value = value[key]
    return value


def path_text(path: Path) -> str:
    """A path as people write it: [0], ['logits'], [1][0]."""
    return "".join(f"[{key!r}]" for key in path)
