"""Train very deep networks, and see what every layer does.

The packages load on first use, so that `import verydeep` costs nothing: `verydeep.nn`, `verydeep.models`, ...
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # so that type checkers see `verydeep.nn.HighwayLinear`
    from verydeep import (
        analysis,
        bench,
        config,
        data,
        depth,
        errors,
        interop,
        models,
        nn,
        objectives,
        optim,
        paper,
        report,
        search,
        sklearn,
        studies,
        training,
    )

    __version__: str
else:  # where type checkers would take any name for granted

    def __getattr__(name: str) -> str | ModuleType:
        if name == "__version__":
            from importlib.metadata import version

            return version("verydeep")
        missing = AttributeError(f"module 'verydeep' has no attribute '{name}'")
        if name.startswith("_"):
            raise missing
        try:
            return import_module(f"verydeep.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"verydeep.{name}":
                raise  # something that the package needs is not installed
            raise missing from None


__all__ = [
    "__version__",
    "analysis",
    "bench",
    "config",
    "data",
    "depth",
    "errors",
    "interop",
    "models",
    "nn",
    "objectives",
    "optim",
    "paper",
    "report",
    "search",
    "sklearn",
    "studies",
    "training",
]


def __dir__() -> list[str]:
    return __all__
