"""The commands on the page about depth: what to do next, and how to do each step by hand."""

import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from verydeep.depth import DepthAnswer, DepthPoint

_SHORT = {
    "model.name": "--model",
    "model.depth": "--depth",
    "model.width": "--width",
    "model.activation": "--activation",
    "model.gate_bias": "--gate-bias",
    "optim.name": "--optim",
    "optim.lr": "--lr",
    "optim.weight_decay": "--weight-decay",
    "schedule.name": "--schedule",
}


@dataclass(frozen=True)
class PageCommand:
    """A command, what it does, and the page that it writes, if that is already there."""

    what: str
    line: str
    page: str | None = None


def next_commands(answer: DepthAnswer, folder: Path) -> list[PageCommand]:
    """What one does with the recommended network; `folder` is that of the page."""
    if answer.network is None:
        return []
    network = _inside(answer, answer.network.path)
    explore = f"{answer.network.path}/explore.html"
    new = ("rows", "NEW.csv") if answer.unit == "layers" else ("images", "NEW_FOLDER")
    return [
        PageCommand(f"Predict new {new[0]}:", _line("predict", network, new[1], "-o", "predictions.csv")),
        PageCommand("Export it, to run it without this program:", _line("export", network, "--onnx", "network.onnx")),
        PageCommand("See what its layers do:", _line("report", network)),
        PageCommand(
            "Try inputs and close layers, on a page of its own:",
            _line("explore", network),
            quote(explore) if (folder / explore).exists() else None,
        ),
    ]


def hand_commands(answer: DepthAnswer) -> list[PageCommand]:
    """Every step as a command of its own."""
    deep = answer.point(max((point.depth for point in answer.points), default=0))
    found = []
    if deep is not None and deep.depth >= 2:
        folder = "runs/deep"
        first = f"{folder}/seed-{_first_seed(answer)}" if answer.plan.seeds > 1 else folder
        found += [
            PageCommand("Train the deep network.", _train(answer, deep, folder)),
            PageCommand("Close its layers in turn, to see which it uses.", _line("analyze", first)),
            PageCommand(
                "Remove the layers that it does not need, and fine-tune the rest.",
                _line("prune", first, "--fine-tune", "5"),
            ),
        ]
    point = None if answer.depth is None else answer.point(answer.depth, answer.kind)
    if point is not None and point != deep:
        found.append(PageCommand("Train at the depth of the answer.", _train(answer, point, "runs/enough")))
    if answer.folder:
        found.append(
            PageCommand(
                "Continue the trainings behind this page if they were stopped, here or on another machine that shares "
                "the folder.",
                _line("worker", answer.folder),
            )
        )
    return found


def _train(answer: DepthAnswer, point: DepthPoint, folder: str) -> str:
    stem = "mlp" if answer.unit == "layers" or point.depth == 0 else "conv"
    settings = {"model.name": f"{point.kind}-{stem}"}
    if stem == "mlp":  # the depth of a convolutional network follows from its stages
        settings["model.depth"] = str(point.depth)
    found = (each.partition("=")[::2] for each in point.settings)
    settings |= {name: value for name, value in found if value not in ("", "None")}
    words = ["train", *([answer.source] if answer.source else []), *answer.options]
    for name, value in settings.items():
        words += [_SHORT.get(name, "--" + name.replace("_", "-")), value]
    plan = answer.plan
    words += ["--epochs", str(plan.epochs)] if plan.epochs else []
    words += ["--batch-size", str(plan.batch_size)] if plan.batch_size else []
    words += ["--folds", str(plan.folds)] if plan.folds > 1 else []
    words += ["--seeds", str(plan.seeds)] if plan.seeds > 1 else []
    words += ["--seed", str(_first_seed(answer))] if plan.seed else []
    words += ["--schedule", "one-cycle", "--warmup", "0.1", "--metric", "loss", "--evaluate-test", "end"]
    return _line(*words, "--folder", folder)


def _first_seed(answer: DepthAnswer) -> int:
    return next((point.seeds[0] for point in answer.points if point.seeds), answer.plan.seed)


def _inside(answer: DepthAnswer, path: str) -> str:
    return str(PurePosixPath(answer.folder) / path) if answer.folder else path


def _line(*words: str) -> str:
    return shlex.join(["verydeep", *words])
