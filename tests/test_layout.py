"""The layout of the house: who may import whom, what an import costs, and that the README tells the truth."""

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
    {"errors", "processes", "redact"},
    {"config", "files", "cpu"},
    {"lock"},
    {"kernels"},
    {"nn"},
    {"models", "data"},
    {"optim"},
    {"objectives"},
    {"training", "analysis"},
    {"search"},
    {"report"},
    {"interop"},
    {"bench"},
    {"paper"},
    {"cli"},
]
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
    wrong = [
        f"{path.relative_to(SOURCE)} imports verydeep.{other}"
        for path in FILES
        for other in imports(path)
        if other != package(path) and FLOOR[other] >= FLOOR[package(path)]
    ]
    assert wrong == []


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


def test_nothing_is_unpickled() -> None:
    loads = re.compile(r"\bpickle\b|torch\.load\(|allow_pickle=True|joblib")
    assert [path for path in FILES if loads.search(re.sub(r'""".*?"""|#.*', "", path.read_text(), flags=re.S))] == []


def test_python_is_started_in_one_way_only() -> None:
    starts = re.compile(r"sys\.executable|get_context|multiprocessing(\.\w+)? import .*(?<!Spawn)(Process|Pool)\b")
    files = [*SOURCE.rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    assert [path.name for path in files if starts.search(path.read_text())] == ["processes.py"]


@pytest.mark.slow
def test_the_examples_of_the_readme_run(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert examples
    for example in examples:
        subprocess.run([sys.executable, "-W", "error", "-c", example], check=True, cwd=tmp_path, timeout=None)


def test_the_readme_names_the_commands_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    named = set(re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= named <= targets
