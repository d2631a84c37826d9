"""The layout of the house: who may import whom, what an import costs, and that CONTRIBUTING describes it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "verydeep"
# From the ground up. A package imports only from lower floors, never from one beside it.
FLOORS: list[set[str]] = [
    {"errors", "float64", "lazy", "notebook", "processes", "redact", "terminal", "words"},
    {"files", "cpu", "memory"},
    {"config", "npz"},
    {"lock"},
    {"kernels"},
    {"nn"},
    {"models", "data"},
    {"optim"},
    {"objectives"},
    {"training", "analysis"},
    {"studies"},
    {"search"},
    {"depth"},
    {"report"},
    {"interop", "sklearn"},
    {"bench"},
    {"paper"},
    {"cli"},
]
# Results draw themselves when they are asked to, and import for that from a higher floor.
UPWARDS = {
    "training/run/_display.py imports verydeep.report",
    "search/_display.py imports verydeep.report",
    "analysis/_display.py imports verydeep.report",
    "depth/_display.py imports verydeep.report",
}
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def package(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Packages of ours that a file imports, inside functions too."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    ours = (module.split(".") for module in modules if module.startswith("verydeep."))
    return {parts[1] for parts in ours if not parts[1].startswith("__")}


FILES = [path for path in SOURCE.rglob("*.py") if package(path) not in ("__init__", "__main__")]


def test_imports_go_downwards_only() -> None:
    upwards = {
        f"{path.relative_to(SOURCE)} imports verydeep.{other}"
        for path in FILES
        for other in imports(path)
        if other != package(path) and FLOOR[other] >= FLOOR[package(path)]
    }
    assert upwards == UPWARDS


def test_every_package_has_its_floor() -> None:
    assert {package(path) for path in FILES} == set(FLOOR)


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_the_package_or_the_command_line_loads_nothing_heavy() -> None:
    heavy = ("torch", "numpy", "scipy", "sklearn", "matplotlib", "optuna", "llvmlite", "pandas", "PIL")
    code = f"import sys, verydeep, verydeep.cli; print([m for m in {heavy} if m in sys.modules])"
    assert python(code).strip() == "[]"


def test_packages_load_on_first_use() -> None:
    assert python("import verydeep; print(verydeep.nn.HighwayLinear.__name__)").strip() == "HighwayLinear"
    assert re.fullmatch(r"\d+\.\d+\.\d+", python("import verydeep; print(verydeep.__version__)").strip())
    with pytest.raises(subprocess.CalledProcessError):
        python("import verydeep; verydeep.nothing")


LAZY = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py") if "lazy_imports" in path.read_text())


def test_lazy_packages_load_no_third_party_module_and_hold_what_they_list() -> None:
    assert {"data", "models", "training", "search"} <= set(LAZY)
    code = f"""
import importlib, sys
packages = [importlib.import_module("verydeep." + name) for name in {LAZY}]
print([name for name in ("torch", "numpy", "scipy", "optuna", "matplotlib", "jinja2") if name in sys.modules])
for package in packages:
    assert dir(package) == sorted(package.__all__) and not hasattr(package, "nothing")
    for name in package.__all__:
        getattr(package, name)
"""
    assert python(code).strip() == "[]"


def test_nothing_is_unpickled() -> None:
    loads = re.compile(r"\bpickle\b|torch\.load\(|allow_pickle=True|joblib")
    assert [path for path in FILES if loads.search(re.sub(r'""".*?"""|#.*', "", path.read_text(), flags=re.S))] == []


def test_python_is_started_in_one_way_only() -> None:
    starts = re.compile(r"sys\.executable|multiprocessing|Popen|python_command\(")
    assert [path.name for path in SOURCE.rglob("*.py") if starts.search(path.read_text())] == ["processes.py"]
    otherwise = re.compile(r"sys\.executable|multiprocessing")  # benchmarks run commands, through python_command
    assert [path for path in (ROOT / "benchmarks").rglob("*.py") if otherwise.search(path.read_text())] == []


def test_contributing_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:src/|tests/|benchmarks/|[a-z]+/)[\w/.-]*(?:\.py|/))`", text))
    assert len(named) > 30
    assert [name for name in sorted(named) if not ((ROOT / name).exists() or (SOURCE / name).exists())] == []


def test_contributing_lists_every_package_and_no_other() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("| package |")[2].partition("\n\n")[0]
    rows = [set(re.findall(r"`(\w+)`", row.split("|")[1])) for row in table.splitlines() if "`" in row]
    assert rows == FLOORS[::-1]


def test_files_are_private_and_folders_are_not() -> None:
    public = {
        "functional.py",
        "cpu.py",
        "errors.py",
        "files.py",
        "float64.py",
        "lazy.py",
        "lock.py",
        "memory.py",
        "notebook.py",
        "npz.py",
        "processes.py",
        "redact.py",
        "terminal.py",
        "words.py",
    }
    wrong = [path for path in FILES if not path.name.startswith("_") and path.name not in public]
    assert wrong + [path.parent for path in FILES if path.parent.name.startswith("_")] == []


def test_packages_import_each_other_by_public_names() -> None:
    private = re.compile(r"^\s*from verydeep\.(\w+)\.[\w.]*_\w* import|^\s*from verydeep\.(\w+) import _", flags=re.M)
    wrong = [
        f"{path.relative_to(SOURCE)} imports {found[0].strip()}"
        for path in FILES
        for found in private.finditer(path.read_text())
        if (found[1] or found[2]) != package(path)
    ]
    assert wrong == []


def test_every_package_says_what_it_is_for() -> None:
    short = [
        path
        for path in SOURCE.rglob("__init__.py")
        if len((ast.get_docstring(ast.parse(path.read_text())) or "").split()) < 20
    ]
    assert short == []


def test_no_two_classes_share_a_name() -> None:
    names = [
        node.name for path in FILES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []
