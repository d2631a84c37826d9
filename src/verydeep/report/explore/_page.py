"""`write_explore`: a page that holds a run's network, some of its samples, and everything that computes and draws."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from verydeep.errors import UserError
from verydeep.files import write_atomic
from verydeep.report._layers_used import Bar, no_bar
from verydeep.report.explore._importance import describe_importance
from verydeep.report.explore._inputs import describe_inputs
from verydeep.report.explore._network import describe_network
from verydeep.report.explore._samples import EmbeddedSamples, choose_samples
from verydeep.report.explore._snapshots import describe_snapshots
from verydeep.report.explore._weights import describe_weights
from verydeep.report.explore._words import learned_nothing, page_words
from verydeep.report.html._heat_maps import colour_maps
from verydeep.report.html._render import fill_template, read_page_file
from verydeep.training import Run, RunData, list_pretrained, load_own_with_raw, split_of

_WORKER = ("engine.js", "prepare.js", "images.js", "worker.js")  # these run without a document
_PAGE = (
    *("elements.js", "state.js", "heatmap.js", "ribbon.js", "layers.js", "journey.js", "answer.js", "score.js"),
    *("grid.js", "draw.js", "upload.js", "row.js", "inputs.js", "closing.js", "detail.js", "compare.js"),
    *("training.js", "tour.js", "start.js"),
)
_STYLES = ("explore.css", "panels.css")

Step = Callable[[str], AbstractContextManager[Any]]


@contextmanager
def _silently(_what: str) -> Iterator[None]:
    yield


def write_explore(
    run: Run,
    path: str | Path,
    *,
    samples: int | None = None,
    root: str | Path | None = None,
    status: Step = _silently,
    bar: Bar = no_bar,
) -> EmbeddedSamples:
    """Write a page in which a run's network answers for samples, drawings, images or rows of a table.

    The page is one file with weights, samples and inference inside; it needs no server and no network access.

    Args:
        run: The run, with weights.
        path: The file to write.
        samples: Count the idle layers on at most this number of samples; by default, on all, as `verydeep analyze`
            does. What the run's analysis found on the same samples is used again.
        root: The folder of known datasets.
        status: A context manager that is entered with the name of each step that takes time.
        bar: A context manager that is entered with the name of the step that takes the longest, and yields a function
            for the fraction that is done.

    Returns:
        The samples in the page.

    Raises:
        UserError: The page cannot run the network, or the run's data is not available.

    Example:
        >>> from verydeep.data import DataConfig
        >>> from verydeep.report import write_explore
        >>> from verydeep.training import ModelConfig, TrainConfig, train
        >>> config = TrainConfig(data=DataConfig("digits"), model=ModelConfig(depth=4, width=8), epochs=1)
        >>> run = train(config, "runs/explored")
        >>> len(write_explore(run, "explore.html").x) >= 200
        True
    """
    model = run.model
    network = describe_network(model)
    split_name = "valid" if run.config.evaluate_test == "never" else "test"
    with status(f"reading {run.config.data.source}"):
        dataset, raw = load_own_with_raw(run, root)
        split = split_of(run, dataset, split_name)
    task, preparation = run.task, RunData.load(run).preparation
    layers = sum(step["layer"] is not None for step in network.steps)
    with status("choosing samples"):
        chosen = choose_samples(model, split, raw[split_name], task)
    importance = describe_importance(run, dataset, layers, samples, bar)
    names = {"test": "test", "valid": "validation"}
    data = {
        "colour_maps": colour_maps(),
        "name": _name(run),
        "data_name": dataset.name,
        "split": names[split_name],
        "accuracy": _accuracy(run, split_name),
        "task": {"kind": task.kind, "names": task.names, "mean": task.mean, "deviation": task.deviation},
        "network": {"steps": network.steps} | describe_weights(network.weights, model, chosen.x, chosen.outputs, task),
        "inputs": describe_inputs(preparation, chosen.raw, chosen.x, raw[split_name].x),
        "samples": {
            "targets": chosen.targets.tolist(),
            "scored": chosen.scored.astype(int).tolist(),
            "of": chosen.of,
        },
        "importance": importance,
        "snapshots": describe_snapshots(run, network.weights),
    }
    note = learned_nothing(chosen.baseline, task.kind, names[split_name])
    write_atomic(Path(path), _render(data | {"parameters": network.weights.size}, note))
    return chosen


def _accuracy(run: Run, split_name: str) -> float | None:
    """The accuracy that training measured on all held-out samples."""
    if run.measured is None or run.measure != "accuracy" or run.task.kind != "classification":
        return None
    return run.measured.test_accuracy if split_name == "test" else run.measured.valid_accuracy


def _name(run: Run) -> str:
    """The run's folder; a pretrained network is cached in a folder whose name also has a digest."""
    name = run.path.resolve().name
    pretrained = next((known for known in list_pretrained() if name.startswith(f"{known}-")), None)
    return pretrained if pretrained and run.path.resolve().parent.name == "pretrained" else name


def _render(data: dict[str, Any], note: str | None) -> str:
    context = page_words(data) | {"data": data, "name": data["name"], "note": note}
    style = "\n".join([read_page_file("style.css"), *map(_read, _STYLES)])
    try:
        return fill_template("explore.html", context, _script(), style, _read)
    except ValueError as error:  # JSON has no infinite numbers
        raise UserError(f"the page cannot show this network: its weights or samples are not finite ({error})") from None


def _script() -> str:
    """One script for the page and for its worker, which has no document."""
    page = [read_page_file("colour.js"), *map(_read, _PAGE)]
    parts = ['"use strict";', *map(_read, _WORKER), "if (globalThis.document) {", *page, "}"]
    return "\n".join(parts) + "\n"


def _read(name: str) -> str:
    own = files("verydeep.report.explore").joinpath("page", name)
    return own.read_text("utf-8") if own.is_file() else read_page_file(name)
