"""Sphinx's settings. `build.py` prepares the pages and calls Sphinx."""

import re
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes

project = "verydeep"
author = "The verydeep authors"
copyright = author
version = release = version_of("verydeep")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nb_execution_mode = "off"  # notebooks are committed with their outputs
myst_heading_anchors = 4  # the same anchors as on repository hosts

smartquotes = False  # --resume must stay --resume
default_role = "literal"  # docstrings mark code with single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 90
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"verydeep {version}"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["style.css"]
html_show_search_summary = False  # a page opened from disk may not read the others
html_copy_source = False
html_show_copyright = html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5d8a", "color-brand-content": "#0b5d8a"},
    "dark_css_variables": {"color-brand-primary": "#6cb8e6", "color-brand-content": "#6cb8e6"},
    "navigation_with_keys": True,
}
pygments_style = "default"
pygments_dark_style = "monokai"


def setup(app):  # noqa: ANN001, ANN201 - called by Sphinx
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _name_factories)
    app.connect("autodoc-process-docstring", _shorten_types, priority=600)  # after napoleon
    app.connect("doctree-read", _mark_short_cells)
    app.connect("doctree-read", _mark_short_code)
    extra = Path(app.srcdir) / "extra"
    if extra.exists():
        app.config.html_extra_path = [str(extra)]
    app.config.exclude_patterns = ["extra"]


def _skip(app, what, name, value, skip, options):  # noqa: ANN001, ANN202 - called by Sphinx
    """Leave out what scikit-learn adds to every estimator."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def _name_factories(app, what, name, value, options, signature, returns):  # noqa: ANN001, ANN202 - called by Sphinx
    """Write defaults that a dataclass makes as three dots: Sphinx cannot parse `<factory>`, and shows all of it raw."""
    return (signature.replace("<factory>", "..."), returns) if signature else None


def _shorten_types(app, what, name, value, options, lines):  # noqa: ANN001, ANN202 - called by Sphinx
    """Name our types without their files, which are private."""
    lines[:] = [re.sub(r"\bverydeep\.[\w.]*\b_\w+\.(?=[A-Z])", "", line) for line in lines]


def _mark_short_cells(app, doctree):  # noqa: ANN001, ANN202 - called by Sphinx
    """Let the style sheet keep numbers and names on one line: a browser breaks 5.64e-05 at its hyphen.

    Phrases of several words stay on one line only where there is room.
    """
    for body in doctree.findall(nodes.tbody):
        for cell in body.findall(nodes.entry):
            text = cell.astext()
            if len(text) <= 24 or (" " not in text and len(text) <= 36):
                is_phrase = " " in text and len(re.findall("[A-Za-z]{3,}", text)) > 1
                cell["classes"].append("phrase" if is_phrase else "short")


def _mark_short_code(app, doctree):  # noqa: ANN001, ANN202 - called by Sphinx
    """Let the style sheet keep words of code that fit into a line whole, beside the comma or bracket they touch."""
    for code in doctree.findall(nodes.literal):
        longest = max(map(len, code.astext().split()), default=0)
        code["classes"] += ["short"] * (longest <= 24) + ["fits-cell"] * (longest <= 22)
