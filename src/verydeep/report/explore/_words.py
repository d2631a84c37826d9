"""The first sentences of the page: what can be done with this network and this data."""

from typing import Any

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
    of = ""
    if closable:
        does = ", see what every layer does to it, and close layers to find out which ones matter."
        kind = "highway" if any(step["op"].startswith("highway") for step in closable) else "residual"
        of = f", {len(closable)} of them {kind} layers that can be closed"
    return {
        "headline": journey if hidden else f"See how a linear model answers for {thing}",
        "lead": _ways(inputs, thing) + does,
        "about": f"Network {data['name']}: {hidden} hidden {layer}{of}, {data['parameters']:,} weights, trained on "
        f"{data['data_name']}.",
        "rows": hidden,
        "closable": len(closable),
    }


def _ways(inputs: dict[str, Any], thing: str) -> str:
    if "refused" in inputs:
        return f"Choose {thing}"
    if inputs["kind"] != "image":
        return f"Choose {thing} or change its values"
    return f"Choose {thing} or {'upload' if inputs['ink'] is None else 'draw'} one"
