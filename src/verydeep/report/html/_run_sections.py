"""The sections about the run itself: what was trained on what, how it ended, and how to reproduce it."""

import shlex
from typing import Any

from verydeep.analysis import Findings
from verydeep.config import to_dict, to_toml
from verydeep.files import read_json
from verydeep.nn import suggest_gate_bias
from verydeep.redact import redact
from verydeep.report.figures._axes import metric_name
from verydeep.report.html._interactive_figures import training_charts
from verydeep.report.html._tables import epoch_table, flatten
from verydeep.training import Run, RunInfo, clock, run_info
from verydeep.words import MEASURES, loss_name, plural, score

_ENDINGS = {
    "finished": "It finished all {epochs} epochs.",
    "stopped early": "It stopped after {done} of {epochs} epochs, because {metric} no longer improved.",
    "diverged": "It diverged after {done} of {epochs} epochs: the loss grew without limit.",
    "pruned": "It was made from {parent} by removing layers, without further training.",
    "attended": "It was made from {parent} by learning a policy for its feature maps, without further training.",
    "training": "It is still training: {done} of {epochs} epochs so far.",
}
_STOPPED = "It was stopped after {done} of {epochs} epochs and can be continued."


def run_section(run: Run) -> dict[str, Any]:
    """Collect the title, key figures and training curves."""
    info, metrics = run_info(run, run.path.name), run.metrics
    parent, untrained = run.metadata.get("made_from"), info.status in ("pruned", "attended")
    ending = _ENDINGS.get(info.status, _STOPPED).format(
        done=info.epochs_done, epochs=info.epochs, parent=parent, metric=_selected_by(run)
    )
    if parent and not untrained:
        ending = f"It was made from {parent} by removing layers, and then trained. {ending}"
    return {
        "name": run.path.resolve().name,
        "data_name": info.data,
        "subtitle": _subtitle(run, info),
        "ending": ending if untrained else f"{ending} {_describe_weights(run)}".strip(),
        "facts": _key_figures(run, info),
        "charts": {} if untrained else training_charts(metrics, run.measure),
        "loss_name": loss_name(run.measure),
        "measure": MEASURES.get(run.measure, run.measure),
        "epochs": epoch_table(metrics) if metrics else (),
    }


def _subtitle(run: Run, info: RunInfo) -> str:
    layers = "" if info.depth is None else f", {plural(info.depth, 'hidden layer')}"
    network = "Custom network" if info.model == "(your own)" else info.model
    samples = run.metadata.get("data", {}).get("train")
    return f"{network}{layers}, trained on {info.data}" + (f" ({samples:,} samples)" if samples else "")


def _selected_by(run: Run) -> str:
    """The metric that selects the best epoch, in words: validation accuracy."""
    return metric_name(f"valid_{run.selection.metric}")


def _describe_weights(run: Run) -> str:
    measured = run.measured
    if measured is None:
        return ""
    best = run.selection.value(measured) is not None
    which = f"with the best {_selected_by(run)}" if best else "of the last epoch"
    return f"This page shows the weights {which}, epoch {measured.epoch}."


def _key_figures(run: Run, info: RunInfo) -> list[tuple[str, str]]:
    measured = run.measured
    found = [("status", info.status)]
    for key in ("test", "valid", "train"):
        value = None if measured is None else measured.get(f"{key}_{run.measure}")
        if value is not None:
            found.append((metric_name(f"{key}_{run.measure}"), score(run.measure, value)))
    if info.depth is not None:
        found.append(("depth", plural(info.depth, "hidden layer")))
    if info.parameters:
        found.append(("parameters", f"{info.parameters:,}"))
    if info.status == "pruned":
        return found
    return [*found, ("epochs", f"{info.epochs_done} of {info.epochs}"), ("time", clock(info.seconds))]


def _environment(run: Run) -> list[list[str]]:
    """The rows of environment.json; runs of earlier versions may have a password in their command line."""
    file = run.path / "environment.json"
    rows = flatten(read_json(file)) if file.exists() else []
    return [[name, redact(*value.split(" "))] for name, value in rows]


def next_steps(run: Run, findings: Findings) -> list[tuple[str, str]]:
    """The commands that follow from how many layers the network uses, and what each is for."""
    steps, usage = [], findings.usage
    if usage is None:
        return []
    if usage.idle and findings.prune is None:
        purpose = f"removes the {plural(len(usage.idle), 'idle layer')} and measures the smaller network."
        steps.append((f"verydeep prune {shlex.quote(str(run.path))}", purpose))
    if "dataset" not in run.user_supplied:
        explore = f"verydeep explore {shlex.quote(str(run.path))}"
        steps.append((explore, "makes a page where you try inputs, watch them travel and close layers."))
        target = "".join(f" {shlex.quote(name)}" for name in run.config.data.target)
        command = f"verydeep depth {shlex.quote(run.config.data.source)}" + (f" --target{target}" if target else "")
        steps.append((command, "trains shallower networks to see how many layers would have been enough."))
    return steps


def _with_gate_bias(config: dict[str, Any]) -> dict[str, Any]:
    """A network's configuration with the gate bias that was used, where it was chosen for the depth."""
    if config.get("gate_bias", 0) is not None or config.get("kind") != "highway" or not config.get("depth"):
        return config
    return config | {"gate_bias": f"{suggest_gate_bias(config['depth'], 'linear'):.4g} (chosen for the depth)"}


def reproduction_section(run: Run) -> dict[str, Any]:
    """Collect the configuration, the environment and the commands that make the run again."""
    facts, parent = run.metadata, run.metadata.get("made_from")
    described = {key: facts[key] for key in ("architecture", "config", "size", "data") if facts.get(key)}
    if isinstance(described.get("config"), dict):
        described["config"] = _with_gate_bias(described["config"])
    name = shlex.quote(run.path.resolve().name)
    made = f"prune {shlex.quote(parent)}" if parent else "train run.toml"
    if parent and (run.summary is None or run.summary.status != "pruned"):
        made += f" --fine-tune {run.config.epochs} --lr {run.config.optim.lr}"
    commands = (f"{made} --folder {name}", f"analyze {name}", f"report {name} -o report.html")
    return {
        "toml": to_toml(to_dict(run.config)),
        "environment": flatten(described) + _environment(run),
        "made_from": parent,
        "own": " and the ".join(what for what in facts.get("own") or () if not (parent and what == "model")),
        "commands": "\n".join(f"verydeep {command}" for command in commands),
    }
