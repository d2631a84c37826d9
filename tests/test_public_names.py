"""What users can import, and what importing costs.

`public_names.txt` lists every public name, so that a change of the API is seen in review. To record it again:

    python -m pytest tests/test_public_names.py --record-names
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import verydeep

FILE = Path(__file__).with_name("public_names.txt")
SOURCE = Path(verydeep.__file__).parent
INTERNAL = {"cli", "kernels"}  # the program `verydeep`, and the fused code behind `verydeep.nn`
# The files beside the packages serve the packages, except for the errors.
PACKAGES = sorted({path.parent.name for path in SOURCE.glob("*/__init__.py")} - INTERNAL | {"errors"})


def public_names(module: ModuleType) -> Iterator[str]:
    """What `__all__` of a module lists, and of public modules in it."""
    for name in module.__all__:
        yield f"{module.__name__}.{name}"
        if isinstance(inner := getattr(module, name), ModuleType):
            yield from public_names(inner)


def test_the_public_names_are_the_recorded_ones(request: pytest.FixtureRequest) -> None:
    names = {name for package in PACKAGES for name in public_names(import_module(f"verydeep.{package}"))}
    if request.config.getoption("--record-names"):
        FILE.write_text("".join(f"{name}\n" for name in sorted(names)))
    recorded = set(FILE.read_text().splitlines())
    changed = f"removed {sorted(recorded - names)}, added {sorted(names - recorded)}"
    assert names == recorded, f"{changed}; if this is meant, record the names again with --record-names"


def test_every_package_on_disk_is_listed() -> None:
    assert verydeep.__all__ == ["__version__", *PACKAGES] == dir(verydeep)


@pytest.mark.parametrize("package", [*PACKAGES, *sorted(INTERNAL)])
def test_every_package_on_disk_is_an_attribute_without_an_import(package: str) -> None:
    assert verydeep.__getattr__(package) is import_module(f"verydeep.{package}")


def test_a_missing_package_and_a_missing_dependency_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="module 'verydeep' has no attribute 'nothing'"):
        verydeep.nothing  # type: ignore[attr-defined]  # noqa: B018

    def import_without_torch(name: str) -> ModuleType:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(verydeep, "import_module", import_without_torch)
    with pytest.raises(ModuleNotFoundError, match="No module named 'torch'"):
        verydeep.__getattr__("nn")


def loaded(code: str, given: str) -> set[str]:
    """The packages that code loads, beside those of Python itself and those that are there before it runs."""
    now = "{name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names"
    program = f"import sys; {given}; before = {now}; {code}; print(*({now}) - before)"
    return set(subprocess.check_output([sys.executable, "-c", program], text=True).split())


def test_the_package_itself_loads_no_other() -> None:
    assert loaded("import verydeep; dir(verydeep)", given="pass") == {"verydeep"}


def test_the_layers_load_torch_numpy_and_llvmlite_only() -> None:
    assert loaded("import verydeep.nn", given="import torch, numpy, llvmlite.binding") == {"verydeep"}


def test_type_checkers_see_a_wrong_name_of_the_package() -> None:
    """A `__getattr__` that they see would let every name pass."""
    tree = ast.parse(Path(verydeep.__file__).read_text())
    assert not [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"]
