"""Highway and plain networks of several depths with variants of one setting: which of them train."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verydeep.paper._verdict import Verdict, share_verdict
from verydeep.paper.claims._experiment import (
    TRAINS,
    TRAINS_LINE,
    ClaimCurve,
    ClaimTraining,
    Conclusion,
    best_losses,
    claim_training,
)
from verydeep.report import plot_claim_points

NETWORKS = ("highway-mlp", "plain-mlp")
RATES = (0.005, 0.05)
_DEPTHS = (10, 50, 100)


def variant_trainings(experiment: str, variants: Sequence[str], quick: bool) -> list[ClaimTraining]:
    """Every network and depth with every variant, at two learning rates; only the shallow ones in a quick run."""
    return [
        claim_training(
            "one-epoch",
            quick,
            {"network": network, "depth": depth, experiment: variant, "learning rate": rate},
            **_width(network, variant),
        )
        for depth in (_DEPTHS[:1] if quick else _DEPTHS)
        for network in NETWORKS
        for variant in variants
        for rate in (RATES[-1:] if quick else RATES)
    ]


def _width(network: str, variant: str) -> dict[str, Any]:
    """LWTA needs pairs of units, and plain networks have 71."""
    return {"model__width": 72} if (network, variant) == ("plain-mlp", "lwta") else {}


def variants_verdict(losses: Sequence[float]) -> Verdict:
    """The verdict on highway networks, from the loss of every case."""
    return share_verdict(sum(loss < TRAINS for loss in losses), len(losses))


def variants_conclusion(curves: Sequence[ClaimCurve], label: str) -> Conclusion:
    """How many cases train, for both networks and by depth."""
    losses = best_losses(curves, "network", "depth", label)
    depths = sorted({int(depth) for _, depth, _ in losses})
    counts = {
        network: [
            sum(loss < TRAINS for (name, layers, _), loss in losses.items() if (name, layers) == (network, depth))
            for depth in depths
        ]
        for network in NETWORKS
    }
    total = len({variant for _, _, variant in losses})
    highway, plain = (", ".join(map(str, counts[network])) for network in NETWORKS)
    layers = ", ".join(map(str, depths))
    return Conclusion(
        f"of {total} at {layers} layers, {highway} train (plain networks: {plain})",
        variants_verdict([loss for (name, _, _), loss in losses.items() if name == NETWORKS[0]]),
        {"depths": depths, "variants": total, "trained": counts}
        | {"loss": {" ".join(map(str, key)): loss for key, loss in losses.items()}},
    )


def draw_variants(curves: Sequence[ClaimCurve], label: str, title: str, path: Path) -> None:
    """Draw the loss of every case: a panel per network, a row per variant, a marker per depth."""
    losses = best_losses(curves, "network", "depth", label)
    panels: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for (network, depth, variant), loss in losses.items():
        points = panels.setdefault(str(network).removesuffix("-mlp"), {}).setdefault(f"{depth} layers", [])
        points.append((str(variant), loss))
    plot_claim_points(panels, path, rows=title, values="training loss", line=TRAINS_LINE, worst=math.log(10))
