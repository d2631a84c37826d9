"""Section 4: what the gates of the networks of Figures 2 to 4 do, and which of their layers matter.

`_inside_search` finds, trains and examines the networks; the verdicts take all seeds into account.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import ClaimExperiment, Conclusion, Evidence, PaperStatement
from verydeep.paper.claims.experiments._inside_search import (
    CIFAR,
    MNIST,
    SEARCHES,
    search_networks,
)
from verydeep.paper.fig1._summary import describe_protocol
from verydeep.report import plot_claim_lines

Networks = Mapping[str, Mapping[str, Any]]  # the numbers of the networks of one set of images, by seed

_CORRELATED, _WEAKLY = 0.2, 0.1
_STRIPES = {MNIST: 15, CIFAR: 40}  # layers, in the paper
_NEAR = 10  # layers
_EARLY = 15  # layers in which classes differ for MNIST, in the paper
_IDLE = 0.6  # of the layers for MNIST, in the paper
_LUCK = (
    "The paper published neither the ranges that it searched nor the settings that it found, so our networks have "
    "others."
)


def seeds_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on all seeds: that of each if they are the same, and otherwise that they differ in part."""
    return verdicts[0] if len(set(verdicts)) == 1 else "differs in part"


def correlation_verdict(correlation: float) -> Verdict:
    """Agrees above 0.2, and disagrees up to 0.1."""
    return "agrees" if correlation > _CORRELATED else "differs in part" if correlation > _WEAKLY else "disagrees"


def most_verdict(shares: Sequence[float]) -> Verdict:
    """Whether every share is more than half."""
    return any_verdict(sum(share > 0.5 for share in shares), len(shares))


def selective_verdict(on_average: float, per_sample: float) -> Verdict:
    """Whether most gates are active on average, and at most half as many for a single sample."""
    return any_verdict((on_average > 0.5) + (per_sample <= on_average / 2), 2)


def stripes_verdict(layers: Mapping[str, Sequence[int]]) -> Verdict:
    """Whether the change ends within 10 layers of where the paper has it, in every network or in some."""
    near = [abs(count - _STRIPES[name]) <= _NEAR for name, counts in layers.items() for count in counts]
    return any_verdict(sum(near), len(near))


def idle_verdict(share: float) -> Verdict:
    """Whether 50 to 70 % of the layers are idle, or at least a third."""
    return "agrees" if abs(share - _IDLE) <= 0.1 else "differs in part" if share > 1 / 3 else "disagrees"


def first_layers_verdict(share: float) -> Verdict:
    """Whether at least 90 % of the first 40 layers matter, or at least half of them."""
    return "agrees" if share >= 0.9 else "differs in part" if share >= 0.5 else "disagrees"


def routing_verdict(probes: Sequence[tuple[float, float]]) -> Verdict:
    """Whether the gates alone tell the class at least twice as often as chance, in every network or in some."""
    return any_verdict(sum(accuracy >= 2 * chance for accuracy, chance in probes), len(probes))


def depth_of_routing_verdict(layers: Mapping[str, Sequence[int]]) -> Verdict:
    """Whether classes differ early for MNIST and not for CIFAR-100, in every network or in some."""
    good = [(count <= _EARLY) == (name == MNIST) for name, counts in layers.items() for count in counts]
    return any_verdict(sum(good), len(good))


def half_within(values: Sequence[float]) -> int:
    """The number of first layers that make up half of the sum over all layers."""
    return next(number for number, total in enumerate(accumulate(values), 1) if total >= sum(values) / 2)


def _networks(evidence: Evidence) -> dict[str, Networks]:
    """The networks that were examined, by set of images and seed; nothing if the search is not over."""
    return {
        name: {seed: each for seed, each in found["networks"].items() if each["status"] != "diverged"}
        for name, found in evidence.measured.items()
    }


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    found = _networks(evidence)
    if not found:
        return [Conclusion()] * len(INSIDE.statements)
    if not all(found.values()):
        return [Conclusion("all networks of a set diverged")] * len(INSIDE.statements)
    cifar, note = found[CIFAR], _diverged(evidence)
    conclusions = [
        _most_fell(found),
        _bias_with_depth(cifar),
        _bias_with_activity(cifar),
        _selective(cifar),
        _stripes(found),
        _routing(found),
        _depth_of_routing(found),
        _idle(found[MNIST]),
        _first_layers(cifar),
    ]
    return [replace(each, measured=each.measured + note) if each.verdict else each for each in conclusions]


def _diverged(evidence: Evidence) -> str:
    """Which networks diverged and are left out, in words."""
    names = [
        f"{name}, seed {seed}"
        for name in (MNIST, CIFAR)
        for seed, each in evidence.measured[name]["networks"].items()
        if each["status"] == "diverged"
    ]
    return f" (diverged: {'; '.join(names)})" if names else ""


def _values(networks: Networks, key: str) -> list[Any]:
    return [each[key] for each in networks.values()]


def _listed(values: Sequence[Any], how: str) -> str:
    """The values, one per seed; only one if all look the same."""
    texts = [format(value, how) for value in values]
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


def _both(values: Mapping[str, Sequence[Any]], how: str) -> str:
    return "; ".join(f"{name}: {_listed(each, how)}" for name, each in values.items())


def _by_seed(networks: Networks, *keys: str) -> dict[str, dict[str, Any]]:
    return {key: {seed: each[key] for seed, each in networks.items()} for key in keys}


def _most_fell(found: Mapping[str, Networks]) -> Conclusion:
    shares = {name: _values(each, "biases_fell") for name, each in found.items()}
    return Conclusion(
        f"biases that fell: {_both(shares, '.0%')}",
        most_verdict([share for each in shares.values() for share in each]),
        {name: _by_seed(each, "biases_fell") for name, each in found.items()},
    )


def _bias_with_depth(networks: Networks) -> Conclusion:
    values = [value or 0.0 for value in _values(networks, "bias_with_depth")]  # None: all biases are the same
    verdict = seeds_verdict([correlation_verdict(value) for value in values])
    return Conclusion(
        f"correlation of bias and depth: {_listed(values, '+.2f')}", verdict, _by_seed(networks, "bias_with_depth")
    )


def _bias_with_activity(networks: Networks) -> Conclusion:
    """Over the layers, because the paper compares two gradients in depth; biases all begin with the same value."""
    values = {seed: correlation(each["mean_bias_change"], each["mean_activity"]) for seed, each in networks.items()}
    gates = [value or 0.0 for value in _values(networks, "activity_with_bias")]
    text = (
        f"correlation of mean bias and mean activity over the layers: {_listed(list(values.values()), '+.2f')} "
        f"(over single gates: {_listed(gates, '+.2f')})"
    )
    verdict = seeds_verdict([correlation_verdict(-value) for value in values.values()])
    return Conclusion(text, verdict, {"over_layers": values} | _by_seed(networks, "activity_with_bias"))


def correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """The correlation of two sequences; 0 if one is constant."""
    if max(a) == min(a) or max(b) == min(b):
        return 0.0
    return statistics.correlation(a, b)


def _selective(networks: Networks) -> Conclusion:
    keys = ("active_on_average", "active_per_sample")
    on_average, per_sample = (_values(networks, key) for key in keys)
    return Conclusion(
        f"on average: {_listed(on_average, '.0%')}; per sample: {_listed(per_sample, '.0%')}",
        seeds_verdict([selective_verdict(*pair) for pair in zip(on_average, per_sample, strict=True)]),
        _by_seed(networks, *keys),
    )


def _stripes(found: Mapping[str, Networks]) -> Conclusion:
    layers = {name: _values(each, "stripes_begin") for name, each in found.items()}
    return Conclusion(
        f"layers with 90 % of the change: {_both(layers, 'd')}",
        stripes_verdict(layers),
        {name: _by_seed(each, "stripes_begin") for name, each in found.items()},
    )


def _routing(found: Mapping[str, Networks]) -> Conclusion:
    keys = ("probe_accuracy", "probe_chance", "significant")
    networks = [each for several in found.values() for each in several.values()]
    texts = [
        f"{name}: {_listed(_values(each, keys[0]), '.0%')} (chance {_listed(_values(each, keys[1]), '.0%')})"
        for name, each in found.items()
    ]
    return Conclusion(
        f"classes named by a linear probe of the gates: {'; '.join(texts)}",
        routing_verdict([(each["probe_accuracy"], each["probe_chance"]) for each in networks]),
        {name: _by_seed(each, *keys) for name, each in found.items()},
    )


def _depth_of_routing(found: Mapping[str, Networks]) -> Conclusion:
    differences = {name: _by_seed(each, "class_difference")["class_difference"] for name, each in found.items()}
    halves = {name: {seed: half_within(each) for seed, each in seeds.items()} for name, seeds in differences.items()}
    peaks = {
        name: {seed: each.index(max(each)) + 1 for seed, each in seeds.items()} for name, seeds in differences.items()
    }
    layers = {name: list(each.values()) for name, each in halves.items()}
    peak_layers = {name: list(each.values()) for name, each in peaks.items()}
    return Conclusion(
        f"layers with half of the difference: {_both(layers, 'd')}; layer of its peak: {_both(peak_layers, 'd')}",
        depth_of_routing_verdict(layers),
        {name: {"half_within": halves[name], "peak": peaks[name]} for name in found},
    )


def _idle(networks: Networks) -> Conclusion:
    keys = ("idle_alone", "idle_together")
    alone, together = (_values(networks, key) for key in keys)
    return Conclusion(
        f"idle when closed alone: {_listed(alone, '.0%')}; together: {_listed(together, '.0%')}",
        seeds_verdict([idle_verdict(share) for share in together]),
        _by_seed(networks, *keys),
    )


def _first_layers(networks: Networks) -> Conclusion:
    matter, layers = (_values(networks, key) for key in ("first_layers_that_matter", "first_layers"))
    return Conclusion(
        f"of the first {_listed(layers, 'd')} layers, {_listed(matter, 'd')} cost more than 0.1 % when closed",
        seeds_verdict([first_layers_verdict(count / of) for count, of in zip(matter, layers, strict=True)]),
        _by_seed(networks, "first_layers_that_matter", "first_layers"),
    )


def _draw(evidence: Evidence, path: Path) -> None:
    """How far the biases have moved in each layer, which is the first column of Figure 2 without its blocks."""
    panels = {
        name: {
            f"seed {seed}": list(enumerate(each.get("mean_bias_change", ()), 1))
            for seed, each in evidence.measured[name]["networks"].items()
        }
        for name in (MNIST, CIFAR)
    }
    plot_claim_lines(panels, path, x="layer", y="mean change of the gate biases", line=(0.0, "unchanged"), log_y=False)


_PROTOCOL = (
    "the random settings of Figure 1's highway network of 50 layers, all with tanh; "
    + "; ".join(f"{search.name}: {describe_protocol(search.protocol.stages)}" for search in SEARCHES)
    + "; on MNIST, settings that Figure 1's study has trained are taken from there. On each set, the setting with the "
    "lowest training loss is trained again with seeds 0, 1 and 2, for as many epochs as the last stage has, and these "
    "six networks are examined on their whole training sets"
)

INSIDE = ClaimExperiment(
    "inside",
    "gates and layers of the networks of Figures 2 to 4, the best of a search",
    (
        PaperStatement(
            "4",
            "Most gate biases fall during training.",
            "Agrees if more than half do in every network of both sets, differs in part if in some.",
            _LUCK,
        ),
        PaperStatement(
            "4",
            "For CIFAR-100, the gate biases rise with depth.",
            "Agrees if the correlation with depth is above 0.2 for every seed, disagrees if it is at most 0.1 for "
            "every seed, and otherwise differs in part.",
            _LUCK,
        ),
        PaperStatement(
            "4",
            "For CIFAR-100, the gate biases correlate inversely with the average activity of the gates.",
            "The correlation is that of the mean bias and the mean activity of a layer, over the layers, because the "
            "paper compares how both change with depth. Agrees if it is below -0.2 for every seed, disagrees if it is "
            "at least -0.1 for every seed, and otherwise differs in part.",
            _LUCK,
        ),
        PaperStatement(
            "4",
            "For CIFAR-100, most gates are active on average, but few for a single sample.",
            "A gate is active from 0.05 on. Agrees if for every seed more than half are on average and at most half as "
            "many per sample, disagrees if neither holds for any seed, and otherwise differs in part.",
            "How many count as active depends on where the threshold is, which the paper does not give.",
        ),
        PaperStatement(
            "4",
            "Outputs change mostly in the first layers, about 15 for MNIST and 40 for CIFAR-100.",
            "Agrees if 90 % of the change is within 10 layers of these numbers in every network of both sets, differs "
            "in part if in some.",
            "The paper judges by its figure. Our numbers count 90 % of the change: in our networks for MNIST, a small "
            "part of it goes on beyond the first layers.",
        ),
        PaperStatement(
            "4.1",
            "Gates route the classes differently.",
            "Agrees if a linear probe of the gates alone names the class at least twice as often as chance in every "
            "network of both sets, differs in part if in some.",
            _LUCK,
        ),
        PaperStatement(
            "4.1",
            "The gates of different classes differ within the first 15 layers for MNIST, and over all layers for "
            "CIFAR-100.",
            "How much a layer differs is the root mean square of the difference between the mean gates of a class and "
            "those of all samples. Agrees if half of the sum over all layers is within the first 15 layers in every "
            "network for MNIST and in none for CIFAR-100, differs in part if for some networks.",
            _LUCK,
        ),
        PaperStatement(
            "4.2",
            "About 60 % of the layers for MNIST contribute nothing.",
            "Agrees if 50 to 70 % of the layers can be closed together at a cost of 0.1 % of accuracy for every seed, "
            "disagrees if it is at most a third for every seed, and otherwise differs in part.",
            "Our networks need even fewer layers: 12 to 14 of 49.",
        ),
        PaperStatement(
            "4.2",
            "For CIFAR-100, each of the first 40 layers matters.",
            "Agrees if at least 90 % of them cost more than 0.1 % of accuracy when closed alone for every seed, "
            "disagrees if fewer than half do for every seed, and otherwise differs in part.",
            _LUCK,
        ),
    ),
    _conclude,
    draw=_draw,
    protocol=_PROTOCOL,
    search=search_networks,
)
