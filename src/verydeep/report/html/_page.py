"""`write_report`: fill the page's templates with everything known about a run."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from verydeep.analysis import Findings, FoundBlocks, closable_blocks, split_name
from verydeep.errors import UserError
from verydeep.files import write_atomic
from verydeep.report.html._analysis_sections import analysis_sections
from verydeep.report.html._block_sections import layer_noun, refused_section
from verydeep.report.html._evaluation_section import evaluation_section
from verydeep.report.html._render import render
from verydeep.report.html._run_sections import next_steps, reproduction_section, run_section
from verydeep.training import Evaluation, Run

_SECTIONS = (
    ("training", "epochs", "Training"),
    ("predictions", "evaluation", "Predictions"),
    ("gates", "gates", "Gates"),
    ("routing", "routing", "Classes"),
    ("lesions", "lesions", "Which layers matter"),
    ("refused", "refused_lines", "What cannot be closed"),
    ("depth", "depth", "How many layers"),
    ("flow", "flow", "Activations and gradients"),
    ("layers", "layers", "Layer by layer"),
    ("made", "commands", "Reproduce"),
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
    check_same_network(found)
    blocks = _blocks_of(run)
    context = run_section(run) | reproduction_section(run)
    noun = layer_noun(blocks) if blocks else "highway layer"
    context |= analysis_sections(found, context["data_name"], evaluation, split, noun)
    context |= refused_section(blocks.refused if found.lesions or found.usage else ())
    context |= evaluation_section(evaluation, split) | {"next_steps": next_steps(run, found)}
    if (run.path / "explore.html").exists():
        context["explore_page"] = quote(Path(os.path.relpath(run.path / "explore.html", Path(path).parent)).as_posix())
    if evaluation is not None and evaluation.majority is not None:
        after = 1 + next((i for i, (name, _) in enumerate(context["facts"]) if "accuracy" in name), 0)
        context["facts"].insert(after, (f"most frequent class, {split_name(split)}", f"{evaluation.majority[1]:.2%}"))
    context["charts"] |= context.pop("inside")
    context |= {"note": note, "split_name": split_name}
    context["contents"] = contents(context, found)
    write_atomic(Path(path), render("report.html", context))


def _blocks_of(run: Run) -> FoundBlocks:
    """The blocks of a residual network; none for a run of another kind or without weights."""
    has_weights = run.is_network and (run.path / "model.safetensors").exists()
    return closable_blocks(run.model) if has_weights else FoundBlocks()


def contents(context: dict[str, Any], findings: Findings) -> list[tuple[str, str]]:
    """The sections of the page that have something to show: the anchor and the title of each."""
    groups = "Classes" if findings.routing is None else findings.routing.groups.capitalize()
    titles = {"routing": groups}
    return [(name, titles.get(name, title)) for name, key, title in _SECTIONS if context.get(key)]


def check_same_network(findings: Findings) -> None:
    """Refuse results of networks with different numbers of layers; only signal flow may compare several networks.

    Gates and routing have fewer layers than the rest if some layers have no gates; those must be among the others.
    """
    greedy = None if findings.usage is None else findings.usage.greedy
    closed = [found.layers for found in (findings.lesions, findings.pairs, greedy, findings.prune) if found is not None]
    gated = [found.layers for found in (findings.gates, findings.routing) if found is not None]
    if len({len(layers) for layers in closed}) == 1:
        gated = [layers for layers in gated if not set(layers) < set(closed[0])]
    counts = sorted({len(layers) for layers in (*closed, *gated)})
    if len(counts) > 1:
        listed = " and ".join(map(str, counts))
        raise UserError(
            f"these results are from networks with different numbers of layers ({listed}); analyse one network again"
        )
