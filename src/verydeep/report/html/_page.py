"""`write_report`: fill the page's templates with everything known about a run."""

import hashlib
from base64 import b64encode
from datetime import datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from verydeep.analysis import Findings, split_name
from verydeep.errors import UserError
from verydeep.files import write_atomic
from verydeep.report.html._analysis_sections import analysis_sections
from verydeep.report.html._charts import SIZE
from verydeep.report.html._evaluation_section import evaluation_section
from verydeep.report.html._heat_maps import colour_maps
from verydeep.report.html._run_sections import reproduction_section, run_section
from verydeep.training import Evaluation, Run

_SCRIPTS = ("colour.js", "heat.js", "group.js", "chart.js")
_SECTIONS = (
    ("training", "epochs", "Training"),
    ("predictions", "evaluation", "Predictions"),
    ("gates", "gates", "Gates"),
    ("routing", "routing", "Classes"),
    ("lesions", "lesions", "Which layers matter"),
    ("depth", "depth", "How many layers"),
    ("flow", "flow", "Activations and gradients"),
    ("layers", "layers", "Layer by layer"),
    ("made", "toml", "Reproduce"),
    ("glossary", "name", "Glossary"),
)


def write_report(
    run: Run,
    path: str | Path,
    findings: Findings | None = None,
    note: str = "",
    *,
    evaluation: Evaluation | None = None,
    split: str = "test",
) -> None:
    """Write a run's report as one self-contained HTML file.

    Args:
        run: The run, finished or not.
        path: The file to write.
        findings: The results of an analysis; without them, the page covers training only.
        note: A sentence for the reader, such as why there was no analysis.
        evaluation: How good the predictions for held-out data are; without it, the page has no such section.
        split: The split of the evaluation.

    Example:
        >>> from verydeep.analysis import Findings, lesion_study
        >>> from verydeep.data import DataConfig, load_dataset
        >>> from verydeep.report import write_report
        >>> from verydeep.training import ModelConfig, TrainConfig, train
        >>> config = TrainConfig(data=DataConfig("digits"), model=ModelConfig(depth=4, width=8), epochs=1)
        >>> run = train(config, "runs/first")
        >>> lesions = lesion_study(run.model, load_dataset("digits").test, "test")
        >>> write_report(run, "report.html", Findings(lesions=lesions))
    """
    found = findings or Findings()
    _check_same_network(found)
    context = run_section(run) | reproduction_section(run)
    context |= analysis_sections(found, context["data_name"], evaluation, split)
    context |= evaluation_section(evaluation, split)
    if evaluation is not None and evaluation.majority is not None:
        after = 1 + next((i for i, (name, _) in enumerate(context["facts"]) if "accuracy" in name), 0)
        context["facts"].insert(after, ("most frequent class", f"{evaluation.majority[1]:.2%}"))
    context["charts"] |= context.pop("inside")
    context |= {"note": note, "split_name": split_name, "version": version("verydeep")}
    context["date"] = datetime.now().astimezone().strftime("%d %B %Y, %H:%M")
    groups = "Classes" if found.routing is None else found.routing.groups.capitalize()
    titles = {"routing": groups}
    context["contents"] = [(name, titles.get(name, title)) for name, key, title in _SECTIONS if context[key]]
    write_atomic(Path(path), render(context))


def _check_same_network(findings: Findings) -> None:
    """Refuse results of networks with different numbers of layers; only signal flow may compare several networks."""
    greedy = None if findings.usage is None else findings.usage.greedy
    found = (findings.gates, findings.routing, findings.lesions, findings.pairs, greedy, findings.prune)
    counts = sorted({len(result.layers) for result in found if result is not None})
    if len(counts) > 1:
        listed = " and ".join(map(str, counts))
        raise UserError(
            f"these results are from networks with different numbers of layers ({listed}); analyse one network again"
        )


def render(context: dict[str, Any]) -> str:
    """Fill the page; text is escaped, including the data inside its script element."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    script = '"use strict";\n' + "\n".join(map(_read, _SCRIPTS))
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.filters["capitalise"] = lambda text: text[:1].upper() + text[1:]
    data = {
        "colour_maps": colour_maps(),
        "maps": {key: found.to_dict() for key, found in context["heat"].items()},
        "charts": {key: found.to_dict() for key, found in context["charts"].items()},
    }
    # The content security policy allows this script only, so that nothing in the data can ever run.
    trusted = {"script": Markup(script), "script_hash": f"sha256-{digest}", "style": Markup(_read("style.css"))}
    return environment.get_template("report.html").render(context | trusted | {"data": data, "size": SIZE})


def _read(name: str) -> str:
    return files("verydeep.report.html").joinpath("page", name).read_text("utf-8")
