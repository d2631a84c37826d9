"""Section 4: what the gates of the networks of Figures 2 to 4 do, and which of their layers matter.

The numbers are those that `python benchmarks/figures.py` measured over the whole training sets.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from verydeep.files import read_json
from verydeep.paper.claims._experiment import (
    ClaimExperiment,
    Conclusion,
    Evidence,
    PaperStatement,
    Verdict,
    any_verdict,
)

_MNIST, _CIFAR = "MNIST", "CIFAR-100"
_FILES = {_MNIST: "figures-mnist.json", _CIFAR: "figures-cifar100.json"}
_CORRELATED, _WEAKLY = 0.2, 0.1
_STRIPES = {_MNIST: 15, _CIFAR: 40}  # layers, in the paper
_NEAR = 10  # layers
_IDLE = 0.6  # of the layers for MNIST, in the paper
_TOLERANCE = 0.001  # an increase of the error that counts as noticeable
_FIRST = 40  # layers for CIFAR-100, in the paper
_DIFFERENT = (
    "Our networks have settings of our own; the paper's are the best of a random search and were not published."
)


def correlation_verdict(correlation: float) -> Verdict:
    """Agrees above 0.2, and disagrees up to 0.1."""
    return "agrees" if correlation > _CORRELATED else "differs in part" if correlation > _WEAKLY else "disagrees"


def most_verdict(shares: Sequence[float]) -> Verdict:
    """Whether every share is more than half."""
    return any_verdict(sum(share > 0.5 for share in shares), len(shares))


def selective_verdict(on_average: float, per_sample: float) -> Verdict:
    """Whether most gates are active on average, and at most half as many for a single sample."""
    return any_verdict((on_average > 0.5) + (per_sample <= on_average / 2), 2)


def stripes_verdict(layers: Mapping[str, int]) -> Verdict:
    """Whether the change ends within 10 layers of where the paper has it, on both sets or on one."""
    return any_verdict(sum(abs(layers[name] - _STRIPES[name]) <= _NEAR for name in layers), len(layers))


def idle_verdict(share: float) -> Verdict:
    """Whether 50 to 70 % of the layers are idle, or at least a third."""
    return "agrees" if abs(share - _IDLE) <= 0.1 else "differs in part" if share > 1 / 3 else "disagrees"


def first_layers_verdict(share: float) -> Verdict:
    """Whether at least 90 % of the first 40 layers matter, or at least half of them."""
    return "agrees" if share >= 0.9 else "differs in part" if share >= 0.5 else "disagrees"


def routing_verdict(probes: Mapping[str, tuple[float, float]]) -> Verdict:
    """Whether the gates alone tell the class at least twice as often as chance, on both sets or on one."""
    return any_verdict(sum(accuracy >= 2 * chance for accuracy, chance in probes.values()), len(probes))


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    files = {name: evidence.results / "figures" / file for name, file in _FILES.items()}
    if not all(file.exists() for file in files.values()):
        return [Conclusion()] * len(INSIDE.statements)
    found: dict[str, dict[str, Any]] = {name: read_json(file)["analysis"] for name, file in files.items()}
    seen = {name: each["observations"] for name, each in found.items()}
    cifar = seen[_CIFAR]
    return [
        _most_fell({name: each["biases_fell"] for name, each in seen.items()}),
        _correlation("correlation of bias and depth", cifar["bias_with_depth"], 1),
        _correlation("correlation of bias and mean activity", cifar["activity_with_bias"], -1),
        Conclusion(
            f"{cifar['active_on_average']:.0%} on average, {cifar['active_per_sample']:.0%} per sample",
            selective_verdict(cifar["active_on_average"], cifar["active_per_sample"]),
            {name: cifar[name] for name in ("active_on_average", "active_per_sample")},
        ),
        _stripes({name: each["stripes_begin"] for name, each in seen.items()}),
        _routing({name: each["routing"] for name, each in found.items()}),
        Conclusion(
            f"{seen[_MNIST]['idle_alone']:.0%} cost at most 0.1 % when closed alone, "
            f"{seen[_MNIST]['idle_together']:.0%} when closed together",
            idle_verdict(seen[_MNIST]["idle_together"]),
            {name: seen[_MNIST][name] for name in ("idle_alone", "idle_together")},
        ),
        _first_layers(found[_CIFAR]),
    ]


def _most_fell(shares: Mapping[str, float]) -> Conclusion:
    text = ", ".join(f"{share:.0%} ({name})" for name, share in shares.items())
    return Conclusion(f"{text} fell", most_verdict(list(shares.values())), {"biases_fell": dict(shares)})


def _correlation(what: str, value: float, sign: int) -> Conclusion:
    return Conclusion(f"{what} {value:+.2f}", correlation_verdict(sign * value), {what: value})


def _stripes(layers: Mapping[str, int]) -> Conclusion:
    text = ", ".join(f"{count} layers ({name})" for name, count in layers.items())
    return Conclusion(f"90 % of the change within {text}", stripes_verdict(layers), {"stripes_begin": dict(layers)})


def _routing(routing: Mapping[str, Mapping[str, float]]) -> Conclusion:
    probes = {name: (each["probe_accuracy"], each["probe_chance"]) for name, each in routing.items()}
    text = ", ".join(f"{accuracy:.0%} ({name}, chance {chance:.0%})" for name, (accuracy, chance) in probes.items())
    return Conclusion(
        f"a linear probe of the gates names the class for {text}",
        routing_verdict(probes),
        {name: dict(each) for name, each in routing.items()},
    )


def _first_layers(analysis: Mapping[str, Any]) -> Conclusion:
    lesions: list[dict[str, float]] = analysis["lesions"][:_FIRST]
    matter = sum(analysis["baseline"]["accuracy"] - each["accuracy"] > _TOLERANCE for each in lesions)
    text = f"{matter} of the first {len(lesions)} layers cost more than 0.1 % when closed"
    return Conclusion(text, first_layers_verdict(matter / len(lesions)), {"matter": matter, "layers": len(lesions)})


INSIDE = ClaimExperiment(
    "inside",
    "gates and layers of the networks of Figures 2 to 4",
    (
        PaperStatement(
            "4",
            "Most gate biases fall during training.",
            "Agrees if more than half do in both networks, differs in part if in one.",
        ),
        PaperStatement(
            "4",
            "For CIFAR-100, the gate biases rise with depth.",
            "Agrees if the correlation with depth is above 0.2, differs in part if above 0.1.",
            _DIFFERENT,
        ),
        PaperStatement(
            "4",
            "For CIFAR-100, the gate biases correlate inversely with the average activity of the gates.",
            "Agrees if the correlation is below -0.2, differs in part if below -0.1.",
            _DIFFERENT,
        ),
        PaperStatement(
            "4",
            "For CIFAR-100, most gates are active on average, but few for a single sample.",
            "A gate is active from 0.05 on. Agrees if more than half are on average and at most half as many per "
            "sample, differs in part if one of both holds.",
            "How many count as active depends on where the threshold is, which the paper does not give.",
        ),
        PaperStatement(
            "4",
            "Outputs change mostly in the first layers, about 15 for MNIST and 40 for CIFAR-100.",
            "Agrees if 90 % of the change is within 10 layers of these numbers for both, differs in part for one.",
            _DIFFERENT,
        ),
        PaperStatement(
            "4.1",
            "Gates route the classes differently.",
            "Agrees if a linear probe of the gates alone names the class at least twice as often as chance for both "
            "sets, differs in part for one.",
        ),
        PaperStatement(
            "4.2",
            "About 60 % of the layers for MNIST contribute nothing.",
            "Agrees if 50 to 70 % of the layers can be closed together at a cost of 0.1 % of accuracy, differs in part "
            "if more than a third.",
        ),
        PaperStatement(
            "4.2",
            "For CIFAR-100, each of the first 40 layers matters.",
            "Agrees if at least 90 % of them cost more than 0.1 % of accuracy when closed alone, differs in part if at "
            "least half.",
        ),
    ),
    _conclude,
    protocol="the numbers are those of `python benchmarks/figures.py`",
)
