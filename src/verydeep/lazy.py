"""Names of a package that are imported when they are first used.

A package's `__init__.py` lists its imports under `if TYPE_CHECKING:`, where type checkers and editors read them, with
`else: __getattr__, __dir__ = lazy_imports(__name__)`. Importing the package then costs nothing, and asking for a name
loads only the module that holds it: `verydeep.training.list_runs` works without torch.
"""

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module


def lazy_imports(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` for a package from the imports under its `if TYPE_CHECKING:`.

    Args:
        package: The package's `__name__`.
    """
    module = sys.modules[package]

    @cache
    def sources() -> dict[str, str]:
        source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
        blocks = (node for node in ast.parse(source).body if isinstance(node, ast.If))
        imports = (line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom))
        return {alias.name: str(line.module) for line in imports for alias in line.names}

    def getattr_(name: str) -> object:
        if name.startswith("__") or name not in sources():
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(import_module(sources()[name]), name)
        setattr(module, name, value)
        return value

    return getattr_, lambda: list(module.__all__)
