"""The first sentences of the page: what can be done with this network and this data."""

from typing import Any

from verydeep.report.explore._baseline import Baseline

_NAMES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
_THINGS = {"mnist": "a digit", "digits": "a digit", "fashion-mnist": "a piece of clothing"}


def page_words(data: dict[str, Any]) -> dict[str, Any]:
    """Headline, lead and facts of a page, and the number of rows of its maps.

    Args:
        data: Everything that the page gets to know.
    """
    steps, inputs = data["network"]["steps"], data["inputs"]
    layers = [step for step in steps if step["op"] != "pool"]
    hidden = len(layers) - (layers[-1]["op"] == "affine" and layers[-1] is steps[-1])
    closable = [step for step in steps if step["layer"] is not None]
    is_image, layer = inputs["kind"] == "image", "layer" if hidden == 1 else "layers"
    thing = _THINGS.get(data["data_name"], "an image" if is_image else "a row")
    journey = f"Watch {thing} travel through {hidden} {layer}"
    does = ", and see what every layer does to it." if hidden else ", and see the answer."
    of, kind = "", None
    if closable:
        does = ", see what every layer does to it, and close layers to find out which ones matter."
        kind = "highway" if any(step["op"].startswith("highway") for step in closable) else "residual"
        of = f", {len(closable)} of them {kind} layers that can be closed"
    accuracy = "" if data["accuracy"] is None else f" with {data['accuracy']:.2%} {data['split']} accuracy"
    trained_on = _NAMES.get(data["data_name"], data["data_name"])
    return {
        "headline": journey if hidden else f"See how a linear model answers for {thing}",
        "lead": _ways(inputs, thing) + does,
        "about": f"Network {data['name']}: {hidden} hidden {layer}{of}, {data['parameters']:,} weights, trained on "
        f"{trained_on}{accuracy}.",
        "kind": kind,
        "rows": hidden,
        "closable": len(closable),
    }


def learned_nothing(baseline: Baseline, kind: str, split_name: str) -> str | None:
    """A note for a network that is not better than an answer which is always the same; None for others.

    Args:
        baseline: How good both are.
        kind: The kind of the task.
        split_name: What the samples are called on which they were measured.
    """
    if baseline.is_beaten:
        return None
    samples = f"{baseline.samples:,} {split_name} samples"
    if kind == "regression":
        fact = f"its R² on {samples} is {baseline.score:.2f}, and always answering with their mean gives 0"
    elif kind == "multilabel":
        fact = (
            f"{baseline.score:.1%} of its labels for {samples} are correct, and always giving the most frequent value "
            f"of each label makes {baseline.constant:.1%} correct"
        )
    else:
        fact = (
            f"it answers {baseline.score:.1%} of {samples} correctly, and always answering {baseline.name} gives "
            f"{baseline.constant:.1%}"
        )
    return f"This network has learned little or nothing: {fact}. What its layers do here says nothing about the data."


def _ways(inputs: dict[str, Any], thing: str) -> str:
    if "refused" in inputs:
        return f"Choose {thing}"
    if inputs["kind"] != "image":
        return f"Choose {thing} or change its values"
    return f"Choose {thing} or {'upload' if inputs['ink'] is None else 'draw'} one"
