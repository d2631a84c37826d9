"""Pages about every public name, made by Sphinx's autodoc from the docstrings."""

import inspect
import re
from importlib import import_module
from types import ModuleType

PACKAGES = {  # in the order of the navigation
    "nn": "layers",
    "nn.functional": "the highway operation",
    "models": "networks by name",
    "optim": "optimisers",
    "data": "datasets and batches",
    "training": "training, runs and predictions",
    "depth": "how deep must a network be?",
    "sklearn": "scikit-learn estimators",
    "analysis": "gates, lesions, layers used, pruning",
    "objectives": "losses, predictions and scores",
    "report": "figures and pages",
    "search": "searches over settings",
    "studies": "many trainings",
    "interop": "ONNX",
    "config": "configuration files",
    "errors": "errors that a user can fix",
    "paper": "the paper's experiments",
    "bench": "speed measurements",
}


def api_pages() -> dict[str, str]:
    """The pages by their names: the list of packages, and one for each."""
    rows = tree = ""
    pages: dict[str, str] = {}
    seen: dict[int, str] = {}
    for package, about in PACKAGES.items():
        module = import_module(f"verydeep.{package}")
        names = public_names(module)
        rows += f"| [`verydeep.{package}`](api/{package}.md): {about} | {', '.join(f'`{name}`' for name in names)} |\n"
        tree += f"api/{package}\n"
        pages[f"api/{package}"] = _page(module, names, seen)
    pages["api"] = (
        "# Every class and function\n\n"
        "Generated from the docstrings. Only these names are public; files inside packages may move.\n\n"
        f"| package | names |\n|---|---|\n{rows}\n```{{toctree}}\n:hidden:\n\n{tree}```\n"
    )
    return pages


def public_names(module: ModuleType) -> list[str]:
    """The public names of a package, without packages inside it."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and name[0] != "_"
    ]
    return [name for name in names if not inspect.ismodule(getattr(module, name))]


def _page(module: ModuleType, names: list[str], seen: dict[int, str]) -> str:
    text = _without_files(inspect.cleandoc(module.__doc__ or ""))
    lines = []
    for name in names:
        value = getattr(module, name)
        kind = "class" if inspect.isclass(value) else "function" if inspect.isfunction(value) else "data"
        if kind == "class" and issubclass(value, BaseException):
            kind = "exception"
        other = seen.setdefault(id(value), module.__name__)
        if other != module.__name__:
            lines.append(f"`{name}` is the same as `{other}.{name}`.")
            kind = "other"
        elif kind == "data":  # constants and type aliases have no docstring
            lines.append(f".. py:data:: {module.__name__}.{name}")
        else:
            lines.append(f".. auto{kind}:: {module.__name__}.{name}")
        if kind == "class":
            lines.append("   :members:")
        lines.append("")
    return f"# {module.__name__}\n\n{text}\n\n```{{eval-rst}}\n" + "\n".join(lines) + "```\n"


def _without_files(text: str) -> str:
    """A package's docstring without the sentences about its private files and folders, which are for contributors."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        sentences = re.split(r"(?<=\.)\s+(?=[A-Z`])", paragraph)
        paragraphs.append(" ".join(part for part in sentences if not re.search(r"`_\w+`|`\w+/`", part)))
    return "\n\n".join(filter(None, paragraphs))
