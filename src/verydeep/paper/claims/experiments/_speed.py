"""Section 3.1: highway networks consistently converge faster, measured over all 800 curves of Figure 1.

A setting has the same learning rate, momentum, decay and activation in every network, so each highway network has a
plain one to compare with.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist, median

from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import ClaimExperiment, Conclusion, Evidence, PaperStatement
from verydeep.paper.fig1._protocol import DEPTHS, HALVING, Fig1Network
from verydeep.paper.fig1._results import Fig1Results, Fig1Trial
from verydeep.report import plot_claim_lines

_AHEAD = "highway ahead"
_LEARNT = 0.1  # a training loss that counts as learnt, for settings that are trained for at least ten epochs
_LARGE_STEP = 0.03  # a learning rate, divided by 1 - momentum
_CONFIDENCE = NormalDist().inv_cdf(0.975)

Wins = Mapping[int, tuple[int, int]]  # by depth: pairs in which the highway network is ahead, and all pairs


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if not total:
        return 0.0, 1.0
    share, square = count / total, _CONFIDENCE**2 / total
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    return middle - half, middle + half


def speed_verdict(wins: Wins) -> Verdict:
    """Whether the highway network is ahead in more than half of the pairs, beyond chance, at every depth."""
    return any_verdict(sum(wilson_interval(*each)[0] > 0.5 for each in wins.values()), len(wins))


def _wins(plain: Mapping[int, Fig1Trial], highway: Mapping[int, Fig1Trial], epochs: int) -> tuple[int, int]:
    """The pairs of settings in which the highway network has the lower loss, without those in which both diverged."""
    pairs = [(plain[number].best(epochs), highway[number].best(epochs)) for number in plain.keys() & highway.keys()]
    pairs = [pair for pair in pairs if math.isfinite(min(pair))]
    return sum(theirs > ours for theirs, ours in pairs), len(pairs)


def _epochs_to_learn(trials: Mapping[int, Fig1Trial], least: int) -> float:
    """The median number of epochs to a low loss of the settings that were trained for long; infinite if never."""
    long = [trial for trial in trials.values() if trial.epochs >= least]
    firsts = [
        next((epoch for epoch, loss in enumerate(trial.train_loss, 1) if loss < _LEARNT), math.inf) for trial in long
    ]
    return median(firsts) if firsts else math.inf


def _trials(results: Path) -> dict[str, dict[int, dict[int, Fig1Trial]]]:
    """The recorded trials by family and depth."""
    networks = {f: {d: Fig1Network(f, d) for d in DEPTHS} for f in ("plain", "highway")}
    return {
        family: {depth: Fig1Results(results / "fig1", network, HALVING).trials for depth, network in each.items()}
        for family, each in networks.items()
    }


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    trials = _trials(evidence.results)
    first, second, _ = HALVING.stages.epochs
    if not all(each for by_depth in trials.values() for each in by_depth.values()):
        return [Conclusion()]
    wins = {depth: _wins(trials["plain"][depth], trials["highway"][depth], first) for depth in DEPTHS}
    epochs = {family: {depth: _epochs_to_learn(by[depth], second) for depth in DEPTHS} for family, by in trials.items()}
    large = {
        depth: _wins(trials["plain"][depth], _with_large_steps(trials["highway"][depth]), first) for depth in DEPTHS
    }
    texts = []
    for depth, (count, total) in wins.items():
        low, high = wilson_interval(count, total)
        texts.append(f"{depth} layers: {count} of {total} ({low:.0%} to {high:.0%})")
    return [
        Conclusion(
            f"lower loss after {first} epochs with the same settings; " + "; ".join(texts),
            speed_verdict(wins),
            {"pairs": wins, "pairs_with_large_steps": large, f"median_epochs_to_{_LEARNT:g}": epochs},
        )
    ]


def _with_large_steps(trials: Mapping[int, Fig1Trial]) -> dict[int, Fig1Trial]:
    """The trials with large updates."""
    rates = {
        number: float(trial.settings["optim.lr"]) / (1 - float(trial.settings["optim.momentum"]))
        for number, trial in trials.items()
    }
    return {number: trial for number, trial in trials.items() if rates[number] >= _LARGE_STEP}


def _draw(evidence: Evidence, path: Path) -> None:
    trials = _trials(evidence.results)
    first = HALVING.stages.epochs[0]
    shares: list[tuple[float, float]] = []
    intervals: list[tuple[float, float, float]] = []
    for depth in DEPTHS:
        count, total = _wins(trials["plain"][depth], trials["highway"][depth], first)
        shares.append((depth, count / max(1, total)))
        intervals.append((depth, *wilson_interval(count, total)))
    plot_claim_lines(
        {f"after {first} epochs": {_AHEAD: shares}},
        path,
        x="hidden layers",
        y="share of pairs",
        line=(0.5, "as often as not"),
        bands={_AHEAD: intervals},
        log_x=True,
        log_y=False,
    )


SPEED = ClaimExperiment(
    "speed",
    "convergence over all settings of Figure 1",
    (
        PaperStatement(
            "3.1",
            "Highway networks consistently converge faster than plain ones, over all settings.",
            "Agrees if at every depth the highway network has the lower loss after the first epochs in more than half "
            "of the pairs of equal settings, with a 95 % interval above one half; differs in part if at some depths.",
            "It is behind mostly where the learning rate is small: nearly closed gates then learn slowly at first. "
            "With large updates it is ahead in most pairs from 20 layers on, and in nearly all at 50 and 100.",
        ),
    ),
    _conclude,
    draw=_draw,
    protocol="all 800 curves of `verydeep reproduce fig1`, paired by their settings",
)
