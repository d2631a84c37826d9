"""`write_model_report`: the page about a network that is not a run, such as a ResNet or a language model."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import nn

from verydeep.analysis import Block, Findings, RefusedBlock, Score, split_name
from verydeep.files import write_atomic
from verydeep.report.html._analysis_sections import analysis_sections
from verydeep.report.html._block_sections import layer_noun, refused_section
from verydeep.report.html._page import check_same_network, contents
from verydeep.report.html._render import render
from verydeep.words import MEASURES, loss_name, score


def write_model_report(
    findings: Findings,
    path: str | Path,
    name: str = "network",
    *,
    model: nn.Module | None = None,
    blocks: Sequence[Block] = (),
    command: str = "",
    next_steps: Sequence[tuple[str, str]] = (),
    removal: str = "",
    note: str = "",
) -> None:
    """Write the analysis of any network as one self-contained HTML file.

    Args:
        findings: The results of the analysis.
        path: The file to write.
        name: What the page calls the network.
        model: The network; the page names its class and counts its parameters.
        blocks: What `find_blocks` returned; the page lists the blocks that were refused.
        command: The command that makes this page again.
        next_steps: Commands to go on with, and what each is for.
        removal: Lines of Python that remove the idle layers.
        note: A sentence for the reader, such as why there are no lesions.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> from verydeep.analysis import Findings, find_blocks, lesion_study
        >>> from verydeep.data import load_dataset
        >>> from verydeep.report import write_model_report
        >>> class Residual(nn.Sequential):
        ...     def forward(self, x):
        ...         return x + super().forward(x)
        >>> data = load_dataset("digits")
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), Residual(nn.Linear(16, 16)), nn.Linear(16, 10))
        >>> blocks = find_blocks(model, data.test.x[:2])
        >>> lesions = lesion_study(model, data.test, "test", blocks=blocks)
        >>> write_model_report(Findings(lesions=lesions), "model.html", "mine", model=model, blocks=blocks)
    """
    check_same_network(findings)
    noun, whole = layer_noun(blocks), _whole(findings)
    refused: Sequence[RefusedBlock] = getattr(blocks, "refused", ())
    measure = "accuracy" if whole is None else whole.measure
    context: dict[str, Any] = {
        "name": name,
        "subtitle": _subtitle(findings, model),
        "charts": {},
        "facts": _facts(findings, model, whole, refused),
        "loss_name": loss_name(measure),
        "measure": MEASURES.get(measure, measure),
        "next_steps": next_steps,
        "note": note,
        "toml": "",
        "commands": command,
        "removal": removal,
        "environment": _environment(model),
        "epochs": (),
        "evaluation": None,
        "split_name": split_name,
    }
    context |= refused_section(refused) | analysis_sections(findings, "", noun=noun)
    context["charts"] |= context.pop("inside")
    context["contents"] = contents(context, findings)
    write_atomic(Path(path), render("report.html", context))


def _whole(findings: Findings) -> Score | None:
    """The score of the network with no layer closed."""
    if findings.lesions is not None:
        return findings.lesions.baseline
    if findings.pairs is not None:
        return findings.pairs.baseline
    if findings.usage is None:
        return None
    greedy = findings.usage.greedy
    return Score(float(greedy.loss[0]), float(greedy.error[0]), greedy.measure)


def _subtitle(findings: Findings, model: nn.Module | None) -> str:
    kind = "A network" if model is None else type(model).__name__
    measured = findings.lesions or findings.pairs or findings.usage
    return f"{kind}, measured on {split_name(measured.split)}" if measured is not None and measured.split else kind


def _facts(
    findings: Findings, model: nn.Module | None, whole: Score | None, refused: Sequence[RefusedBlock]
) -> list[tuple[str, str]]:
    found = []
    if whole is not None:
        found.append((MEASURES.get(whole.measure, whole.measure), whole.text))
        if whole.perplexity is not None:
            found.append(("perplexity", f"{whole.perplexity:.4g}"))
        found.append(("loss", f"{whole.loss:.4g}"))
    layers = findings.lesions or findings.pairs or (None if findings.usage is None else findings.usage.greedy)
    if layers is not None:
        found.append(("can be closed", str(len(layers.layers))))
    if refused:
        found.append(("cannot be closed", str(len(refused))))
    if model is not None:
        found.append(("parameters", f"{sum(p.numel() for p in model.parameters()):,}"))
    if findings.lesions is not None and findings.lesions.most_important:
        worst = findings.lesions.most_important[0]
        name, perplexity = findings.lesions.layers[worst], findings.lesions.perplexity
        if perplexity is not None:
            found.append((f"perplexity without {name}", f"{perplexity[worst]:.4g}"))
        else:
            lost = score(findings.lesions.measure, findings.lesions.error[worst] - findings.lesions.baseline.error)
            found.append((f"lost without {name}", lost))
    return found


def _environment(model: nn.Module | None) -> list[list[str]]:
    rows = [] if model is None else [["class", f"{type(model).__module__}.{type(model).__qualname__}"]]
    names = ("verydeep", "torch", *(("transformers",) if model is not None and hasattr(model, "config_class") else ()))
    versions = [*([each, version(each)] for each in names), ["Python", platform.python_version()]]
    return [*rows, *versions, ["threads", str(torch.get_num_threads())]]
