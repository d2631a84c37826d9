"""What the page about depth says in words."""

from verydeep.depth import DepthAnswer, DepthPoint, OtherModel
from verydeep.report.figures._depth_layout import below_the_axis, brief_score
from verydeep.training import clock
from verydeep.words import MEASURES, named_score, plural, score


def layers(answer: DepthAnswer, depth: int) -> str:
    """A depth in words: no hidden layer, 1 layer, 4 layers per stage."""
    if depth == 0:
        return "no hidden layer"
    return plural(depth, "layer") + ("" if answer.unit == "layers" else " per stage")


def headline(answer: DepthAnswer) -> tuple[str, str]:
    """The answer in a few words: the large ones and those after them."""
    if answer.depth is None:
        return "No answer", "no network learned anything"
    if answer.depth == 0:
        return "0 layers", "a linear model is enough"
    kind = "plain " if answer.kind == "plain" else ""
    where = "" if answer.unit == "layers" else "per stage "
    return plural(answer.depth, f"{kind}layer"), f"{where}{'is' if answer.depth == 1 else 'are'} enough"


def with_interval(measure: str, value: float, low: float | None, high: float | None) -> str:
    """A score and its interval: 97.20% (95.1% to 98.8%)."""
    ends = "" if low is None or high is None else f" ({interval(measure, low, high)})"
    return score(measure, value) + ends


def interval(measure: str, low: float | None, high: float | None) -> str:
    """The ends of an interval; empty if there is none."""
    if low is None or high is None:
        return ""
    return f"{brief_score(measure, low)} to {brief_score(measure, high)}"


def chart_note(answer: DepthAnswer) -> str:
    """How to read the chart of score against depth."""
    measured = "Bands are 95 % intervals. " if any(point.score_low is not None for point in answer.points) else ""
    shaded = "The shaded range is the interval of the answer. " if answer.depth is not None and answer.interval else ""
    others = "Other models, the dotted lines, were measured on test data. " if answer.others else ""
    left_out = below_the_axis(answer)
    below = f"Below the axis: {'; '.join(left_out)}." if left_out else ""
    return (measured + shaded + others + below).strip()


def network_sentence(answer: DepthAnswer) -> str:
    """How the recommended network was made, and how good it is."""
    network = answer.network
    if network is None:
        return ""
    what = f"The recommended network is a {network.kind} network with {layers(answer, network.depth)}"
    if network.depth == 0:
        what = "The recommended network is a linear model"
    how = (
        "trained from scratch at this depth"
        if network.made == "trained"
        else "made from the deep network by removing layers and fine-tuning the rest"
    )
    other = "removing layers from the deep network" if network.made == "trained" else "training at this depth"
    rival = (
        f" The other way, {other}, gave a higher validation loss ({network.rival_loss:.4g} against "
        f"{network.valid_loss:.4g})."
        if network.rival_loss is not None
        else ""
    )
    again = (
        f" It was then trained again on {network.rows:,} samples, the held-out ones included."
        if answer.rows and network.rows > answer.rows[0]
        else ""
    )
    return f"{what}, {how}.{rival}{again}"


def compare_models(answer: DepthAnswer) -> list[str]:
    """Whether the recommended network is better than each other model, as far as test data can tell."""
    network = answer.network
    if network is None or network.test_score is None:
        return []
    found = []
    for other in answer.others:
        if other.score is not None:
            found.append(_compare(answer, other, network.test_score, network.test_low, network.test_high))
    return found


def _compare(answer: DepthAnswer, other: OtherModel, ours: float, low: float | None, high: float | None) -> str:
    theirs = named_score(answer.measure, other.score or 0.0)
    beside = f"{other.name[:1].upper()}{other.name[1:]} has {theirs} on the same test data"
    if other.score_low is None or other.score_high is None or low is None or high is None:
        better = (
            "less than" if (other.score or 0.0) < ours else "more than" if (other.score or 0.0) > ours else "as much as"
        )
        return f"{beside}, {better} the recommended network."
    if other.score == ours:
        return f"{beside}, as much as the recommended network."
    if other.score_low > high:
        return f"{beside}: it is clearly better than the recommended network. Use it if all you want is predictions."
    if other.score_high < low:
        return f"{beside}: the recommended network is clearly better."
    return f"{beside}. The intervals overlap, so the difference to the recommended network may be chance."


def used_sentences(answer: DepthAnswer) -> list[str]:
    """How many layers the trained deep network uses."""
    used = answer.used
    if used is None:
        return []
    ends = "" if used.interval is None else f" (95 % interval {used.interval[0]} to {used.interval[1]})"
    found = [f"The trained network of {plural(used.depth, 'layer')} uses {used.used} of them{ends}."]
    if len(used.seeds) > 1:
        found.append(f"Trained with {len(used.seeds)} different seeds, it uses {_listed(used.seeds)} layers.")
    if _only_the_intervals_agree(answer):
        found.append(
            "Training says otherwise, but the two intervals overlap: the number of layers that are used varies too "
            "much from seed to seed, or from sample to sample, to contradict the answer."
        )
    if used.samples:
        found.append(f"This was measured on {plural(used.samples, 'held-out sample')}, over all seeds together.")
    return found


def _only_the_intervals_agree(answer: DepthAnswer) -> bool:
    """Whether the layers used are not in the interval of the answer, but the intervals overlap."""
    used, interval = answer.used, answer.interval
    if used is None or used.interval is None or interval is None or answer.unit != "layers" or answer.disagreement:
        return False
    return used.used > max(1, interval[1]) or used.used < interval[0]  # the input layer cannot be closed


def _listed(numbers: tuple[int, ...]) -> str:
    words = [str(number) for number in numbers]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def deepest_sentence(answer: DepthAnswer) -> str:
    """Both kinds at the depth whose training is drawn."""
    if not answer.curves:
        return ""
    depth = max(curve.depth for curve in answer.curves)
    highway, plain = answer.point(depth, "highway"), answer.point(depth, "plain")
    if highway is None or plain is None or depth < 2:
        return ""
    return (
        f"With {layers(answer, depth)}, highway networks reach {_reached(answer, highway)} on held-out data, and plain "
        f"networks {_reached(answer, plain)}. There, a blind guess has {score(answer.measure, answer.guess_score)}."
    )


def _reached(answer: DepthAnswer, point: DepthPoint) -> str:
    diverged = f", {point.diverged} of {plural(len(point.seeds), 'seed')} diverged" if point.diverged else ""
    ends = interval(answer.measure, point.score_low, point.score_high)
    inside = "; ".join(part for part in (f"95 % interval {ends}" if ends else "", diverged.removeprefix(", ")) if part)
    return named_score(answer.measure, point.score) + (f" ({inside})" if inside else "")


def method_sentences(answer: DepthAnswer) -> list[str]:
    """What was trained, and the rule of the answer."""
    plan, (training, held_out, test) = answer.plan, (*answer.rows, 0, 0, 0)[:3]
    name = MEASURES.get(answer.measure, answer.measure)
    found = []
    if training or test:
        parts = [f"{plural(training, 'sample')} to train on", f"{held_out:,} held out per seed", f"{test:,} to test"]
        if answer.validation_rows:
            parts.insert(1, f"{answer.validation_rows:,} to stop early")
        inputs = f" Each sample has {plural(answer.features, 'input')}." if answer.features else ""
        found.append(f"The data was divided into {', '.join(parts[:-1])} and {parts[-1]}.{inputs}")
    if plan.trials:
        shorter = f", {plan.kept} of them to the end" if plan.kept and plan.kept < plan.trials else ""
        held = f", at width {plan.widths[0]}" if len(plan.widths) == 1 else ""
        width = "" if held else "width, "
        found.append(
            f"For each kind and depth, {plural(plan.trials, 'combination')} of settings (learning rate, {width}gate "
            f"bias and others{held}) were tried for up to {plural(plan.search_epochs, 'epoch')}{shorter}. Every depth "
            f"had the same budget."
        )
    if plan.seeds:
        folds = (
            f", each time with another of {plan.folds} parts of the training data held out" if plan.folds > 1 else ""
        )
        best = "the best settings" if plan.finalists < 2 else f"the best {plan.finalists} combinations"
        found.append(
            f"Then {best} were trained from scratch with {plural(plan.seeds, 'seed')}{folds}, for at most "
            f"{plural(plan.epochs, 'epoch')}, stopping early when the loss on validation data, a part of the rest, no "
            f"longer improved."
        )
    if plan.revision:
        found.append(plan.revision)
    added = sorted({point.depth for point in answer.points} - set(plan.depths)) if plan.depths else []
    if added:
        found.append(f"Then the answer was narrowed down with networks of depth {_listed(tuple(added))}.")
    found.append(
        f"The answer is the smallest depth whose mean held-out loss is within one standard error of the best "
        f"network's; which that is, the other seeds decide for each seed. The lowest mean loss is that of depth "
        f"{answer.best_depth} ({answer.best_kind})."
    )
    if answer.interval is not None:
        found.append(
            "Its interval is the range of this answer in 1,000 bootstrap draws of seeds and samples, without the "
            "lowest and highest 2.5 %. What longer training or a longer search would change is not in it."
        )
    else:
        found.append("There is no interval, because that takes an answer and at least three seeds per depth.")
    if answer.network is not None:
        found.append(
            f"Test data was used once, at the end, for the {name} of the recommended network and of the other models. "
            f"No choice depends on it."
        )
    asked = f", and {plan.minutes:g} minutes were asked for" if plan.minutes is not None else ""
    asked = asked or (f", for at most {plan.total_epochs:,} epochs in all" if plan.total_epochs is not None else "")
    if answer.seconds:
        found.append(f"Everything took {clock(answer.seconds)} with {plural(plan.jobs, 'worker')}{asked}.")
    return found
