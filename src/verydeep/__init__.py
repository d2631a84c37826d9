"""Train very deep networks, and see what every layer does.

The packages load on first use, so that `import verydeep` costs nothing: `verydeep.nn`, `verydeep.models`, ...
"""

from importlib import import_module
from types import ModuleType

__all__ = [
    "__version__",
    "bench",
    "config",
    "data",
    "errors",
    "interop",
    "models",
    "nn",
    "objectives",
    "optim",
    "paper",
    "report",
    "training",
]


def __getattr__(name: str) -> str | ModuleType:
    if name == "__version__":
        from importlib.metadata import version

        return version("verydeep")
    if name in __all__:
        return import_module(f"verydeep.{name}")
    raise AttributeError(f"module 'verydeep' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
