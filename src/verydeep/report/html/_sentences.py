"""Results in sentences, with their numbers and what the paper observed."""

import math
from dataclasses import dataclass

import numpy as np

from verydeep.analysis import (
    IDLE,
    ClassRouting,
    DepthUsage,
    LesionStudy,
    Observations,
    observations,
    samples_of,
    split_name,
    the_split,
    tolerance_text,
)
from verydeep.training import Evaluation
from verydeep.words import MEASURES, error_name, named_score, score

_LEAST_GAIN = 0.02  # of loss or accuracy; networks below have learned too little to say which layers they need


@dataclass(frozen=True)
class Statement:
    """A sentence about this network, and what the paper observed in its own."""

    found: str
    paper: str = ""


def doubt(
    usage: DepthUsage,
    data: str,
    routing: ClassRouting | None = None,
    evaluation: Evaluation | None = None,
    split: str = "test",
) -> str:
    """Say that the network is no better than a blind guess, if so; the number of its layers then means nothing.

    Args:
        usage: The depth usage.
        data: The name of the data.
        routing: How often each class occurs in the data of the analysis, if it is known.
        evaluation: How good the predictions for held-out data are, if that is known; it decides alone.
        split: The split of the evaluation.
    """
    greedy = usage.greedy
    loss, guess, where = float(greedy.loss[0]), math.nan, split_name(greedy.split)
    if evaluation is not None:
        if evaluation.has_learned:
            return ""
        loss, guess, where = evaluation.loss, evaluation.guess_loss, split_name(split)
    elif greedy.measure == "r2":
        if greedy.error[0] < 1 - _LEAST_GAIN:
            return ""
        return (
            f"This network has learned next to nothing: its R² on the {where} is {1 - greedy.error[0]:.4f}, where "
            f"always predicting the mean gives 0. How many layers it uses says nothing about {data}."
        )
    elif routing is not None and routing.grouped_by == "class":
        share = routing.counts / routing.counts.sum()
        guess = float(-(share * np.log(share)).sum())
        if loss < (1 - _LEAST_GAIN) * guess or 1 - greedy.error[0] > share.max() + _LEAST_GAIN:
            return ""
    else:
        return ""
    return (
        f"This network has learned next to nothing: its loss on the {where} is {loss:.4g}, where a blind guess has "
        f"{guess:.4g}. How many layers it uses says nothing about {data}."
    )


def answer(usage: DepthUsage, data: str, noun: str = "highway layer") -> str:
    """Say how many layers the network needs.

    Args:
        usage: The depth usage.
        data: The name of the data; empty if the samples are named already.
        noun: What a layer is called.
    """
    kept, total = len(usage.kept), len(usage.greedy.layers)
    where, measure = the_split(usage.greedy.split) or "this data", usage.greedy.measure
    name, this = MEASURES.get(measure, measure), f"For {data}, this" if data else "This"
    if kept == total:
        return (
            f"{this} network needs all its {total} {noun}s: closing the cheapest ones costs more than "
            f"{tolerance_text(measure, usage.tolerance)} and than one standard error on {where}."
        )
    change = float(usage.greedy.error[total - kept] - usage.greedy.error[0])
    nothing = "costs no accuracy" if measure == "accuracy" else f"does not lower {name}"
    cost = nothing if change <= 0 else f"costs {tolerance_text(measure, change)}"
    layers = f"{total} {noun}s" if total > 1 else f"one {noun}"
    idle = "idle layers" if noun.endswith("layer") else "idle blocks"
    if kept == 0:
        return f"{this} network needs none of its {layers}. Closing the {idle} {cost} on {where}."
    others = "the other one is" if total - kept == 1 else f"the other {total - kept} are"
    return f"{this} network needs {kept} of its {layers}: {others} idle. Closing the {idle} {cost} on {where}."


def how_counted(usage: DepthUsage) -> str:
    """Say on which samples the layers were counted, and what was allowed."""
    greedy = usage.greedy
    order = ""
    if greedy.selected_samples and greedy.selected_on != greedy.split:
        order = f", in an order selected on {samples_of(greedy.selected_samples, greedy.selected_on)}"
    held_out = " The run holds out no validation data." if greedy.split == "train" and greedy.selected_samples else ""
    return (
        f"The kept layers are the fewest that stay within {usage.within_text} of the full network on "
        f"{samples_of(greedy.samples, greedy.split)}{order}.{held_out}"
    )


def other_baseline(usage: DepthUsage, lesions: LesionStudy | None) -> str:
    """Say what the full network's score is where the layers were counted, if the lesions have other samples."""
    greedy = usage.greedy
    if lesions is None or (lesions.split, lesions.samples) == (greedy.split, greedy.samples):
        return ""
    here = named_score(greedy.measure, 1 - float(greedy.error[0]))
    there = named_score(lesions.measure, lesions.baseline.accuracy)
    return (
        f" The full network has {here} on these samples, and {there} on "
        f"{samples_of(lesions.samples, lesions.split)}, on which each layer was closed alone."
    )


def on_training_samples(usage: DepthUsage) -> str:
    """The paper's version of the number, which counts layers on the training samples; empty if that is the number."""
    beside = usage.training
    return "" if beside is None else f"On the training set, as in the paper: {beside.count_text}."


def about_gates(seen: Observations) -> list[Statement]:
    """Describe what the paper's Figure 2 shows."""
    found = []
    if seen.biases_fell is not None:
        found.append(
            Statement(
                f"Training made {seen.biases_fell:.0%} of the gate biases more negative than they started.",
                "Contrary to expectation, most biases decreased further during training.",
            )
        )
    if seen.bias_with_depth is not None and seen.activity_with_bias is not None:
        found.append(
            Statement(
                f"The correlation of biases with depth is {_signed(seen.bias_with_depth)}, that of mean gate outputs "
                f"with biases {_signed(seen.activity_with_bias)}.",
                "In the CIFAR-100 network biases increase with depth, and gate activity is inversely correlated: "
                "strong negative biases make gates selective instead of closing them.",
            )
        )
    found += [Statement(*_selectivity(seen))] if seen.active_on_average is not None else []
    if seen.stripes_begin is not None:
        found.append(
            Statement(
                f"90% of the change happens in the first {seen.stripes_begin} layers; after that, outputs hardly "
                f"change (the stripes in the maps above).",
                "Most of the change happens in the early layers: about 15 for MNIST, 40 for CIFAR-100.",
            )
        )
    return found


def _selectivity(seen: Observations) -> tuple[str, str]:
    return (
        f"{seen.active_on_average:.0%} of the gates are active on average (mean of 0.05 or more); a single sample "
        f"activates {seen.active_per_sample:.0%} of them, and opens {seen.open_per_sample:.1%} (above 0.5).",
        "Most gates are active on average, but for each sample only a few blocks transform, and different blocks for "
        "different samples.",
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def about_routing(routing: ClassRouting) -> list[Statement]:
    """Describe what the paper's Figure 3 shows."""
    sizes = np.sqrt([np.nanmean(layer**2) for layer in routing.difference])
    third = max(1, len(sizes) // 3)
    return [
        Statement(
            f"{routing.significant:.0%} of the differences between a {routing.grouped_by} and all samples exceed three "
            f"standard errors. Their size (root mean square) is {sizes[:third].mean():.2g} in the first third of the "
            f"layers and {sizes[-third:].mean():.2g} in the last.",
            "The mean activity differs between classes: within the first 15 layers for MNIST, spread over all for "
            "CIFAR-100.",
        ),
        Statement(
            f"From the gates alone, a linear classifier predicts {_probed(routing)} of {routing.probe_samples:,} "
            f"samples that it has not seen; {_guessing(routing)} is correct for "
            f"{routing.probe_chance:.1%} of them.",
            "Gating is not only a mechanism that eases training, but an important part of the computation.",
        ),
    ]


def _probed(routing: ClassRouting) -> str:
    what = {"class": "the class of", "label": "which samples have a label, correctly for", "range": "the range of"}
    return f"{what[routing.grouped_by]} {routing.probe_accuracy:.1%}"


def _guessing(routing: ClassRouting) -> str:
    return f"always predicting the most frequent {'answer' if routing.grouped_by == 'label' else routing.grouped_by}"


def about_lesions(lesions: LesionStudy, beside_paper: bool = True) -> list[Statement]:
    """Describe what the paper's Figure 4 shows.

    Args:
        lesions: The lesions.
        beside_paper: Whether to add what the paper observed in its highway networks.
    """
    seen = observations(lesions=lesions)
    assert seen.most_important is not None
    assert seen.largest_rise is not None
    worst = [str(layer + 1) for layer in seen.most_important]
    if not worst:
        found = "No single lesion raises the loss" + ("." if lesions.standard_error is None else " by more than noise.")
    elif len(worst) == 1:
        found = f"Closing layer {worst[0]} raises the loss most."
    else:
        found = f"Closing layers {', '.join(worst[:-1])} and {worst[-1]} raises the loss most, in this order."
    largest = int(np.argmax(lesions.error))
    noise = 0.0 if lesions.standard_error is None else float(lesions.standard_error[largest])
    if worst and seen.largest_rise > 2 * noise:
        rise = score(lesions.measure, seen.largest_rise) + (f" (± {score(lesions.measure, noise)})" if noise else "")
        found += f" A single closed layer raises {_the_error(lesions.measure)} by up to {rise}."
    return [
        Statement(found),
        Statement(
            f"{seen.idle_alone:.0%} of the layers cost at most {_idle(lesions.measure)}, or one standard error, when "
            "closed alone.",
            "About 60% of the layers of the MNIST network contribute almost nothing; in the CIFAR-100 network closing "
            "any of the first 40 or so hurts."
            if beside_paper
            else "",
        ),
    ]


def _the_error(measure: str) -> str:
    return f"the {error_name(measure)}" if "accuracy" in measure else error_name(measure)


def _idle(measure: str) -> str:
    return "0.1% of accuracy" if measure == "accuracy" else tolerance_text(measure, IDLE)
