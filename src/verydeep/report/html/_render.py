"""Filling the template of a page that needs no network access and no other file."""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from verydeep.report.html._charts import Chart
from verydeep.report.html._heat_maps import HeatMap, colour_maps

_CHART_SCRIPTS = ("colour.js", "chart.js")
_SCRIPTS = ("colour.js", "heat.js", "group.js", "chart.js")


def render(template: str, context: dict[str, Any]) -> str:
    """Fill a page with charts and heat maps; text is escaped, including the data inside its script element.

    Args:
        template: The name of the template in `page/`, which extends `frame.html`.
        context: The values of the template, among them `charts` and, if it has heat maps, `heat`.
    """
    charts: dict[str, Chart] = context["charts"]
    heat: dict[str, HeatMap] = context.get("heat", {})
    data = {
        "colour_maps": colour_maps() if heat else {},
        "maps": {key: found.to_dict() for key, found in heat.items()},
        "charts": {key: found.to_dict() for key, found in charts.items()},
    }
    script = _script(_SCRIPTS if heat else _CHART_SCRIPTS)
    return fill_template(template, context | {"data": data}, script, read_page_file("style.css"), read_page_file)


def fill_template(
    template: str, context: dict[str, Any], script: str, style: str, read: Callable[[str], str | None]
) -> str:
    """Fill a template that extends `frame.html`.

    Args:
        template: Its name.
        context: The values of the template, among them `data`, which the page's script finds as JSON.
        script: The only script that the page's content security policy allows, so that nothing in the data can run.
        style: The style sheet.
        read: Returns a template by its name.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=FunctionLoader(read), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.filters["capitalise"] = lambda text: text[:1].upper() + text[1:]
    trusted = {"script": Markup(script), "script_hash": f"sha256-{digest}", "style": Markup(style)}
    made = {"version": version("verydeep"), "date": datetime.now().astimezone().strftime("%d %B %Y, %H:%M")}
    return environment.get_template(template).render(context | trusted | made)


def _script(names: Sequence[str]) -> str:
    return '"use strict";\n' + "\n".join(map(read_page_file, names))


def read_page_file(name: str) -> str:
    """Read a template, style sheet or script of the pages."""
    return files("verydeep.report.html").joinpath("page", name).read_text("utf-8")
