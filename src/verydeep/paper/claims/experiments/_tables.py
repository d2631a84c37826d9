"""Sections 3.2 and 3.3: statements that rest on Tables 1 to 3."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import get_args

from verydeep.paper._recipes import Recipe
from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import ClaimExperiment, Conclusion, Evidence, PaperStatement
from verydeep.paper.tables._results import TableResult
from verydeep.paper.tables._rows import TABLE_ROWS, TableRow

_CLOSE = 0.001  # accuracies that are as good as equal
_NEAR = 0.01  # accuracies that compete with each other
_ROWS = {row.name: row for row in TABLE_ROWS}


def competitive_verdict(ours: float, peers: Sequence[float]) -> Verdict:
    """Whether a network comes within 0.1 points of the best of its peers, or at least of one of them."""
    return (
        "agrees" if ours >= max(peers) - _CLOSE else "differs in part" if ours >= min(peers) - _CLOSE else "disagrees"
    )


def at_least_verdict(pairs: Sequence[tuple[float, float]]) -> Verdict:
    """Whether the first accuracy of each pair is at least the second, within 0.1 points."""
    good = sum(ours >= theirs - _CLOSE for ours, theirs in pairs)
    return "agrees" if good == len(pairs) else "differs in part" if good else "disagrees"


def near_verdict(pairs: Sequence[tuple[float, float]]) -> Verdict:
    """Whether the first accuracy of each pair is at most a point below the second."""
    return any_verdict(sum(ours >= theirs - _NEAR for ours, theirs in pairs), len(pairs))


def untrainable_verdict(backpropagation: float, hints: float) -> Verdict:
    """The verdict on a thin maxout network of 11 layers that is trained without hints.

    Args:
        backpropagation: Its accuracy by backpropagation alone.
        hints: The published accuracy with hints.
    """
    return "agrees" if backpropagation < hints / 2 else "differs in part" if backpropagation < hints else "disagrees"


def _accuracies(evidence: Evidence) -> dict[str, float]:
    """The mean test accuracy over the finished seeds of every network, by the best recipe that has any."""
    found: dict[str, float] = {}
    for name, row in _ROWS.items():
        for recipe in get_args(Recipe) if name else ():
            values = _finished(TableResult(evidence.results / "tables", row, recipe))
            if values:
                found[name] = max(found.get(name, 0.0), mean(values))
    return found


def _finished(result: TableResult) -> list[float]:
    curves = () if result.is_quick_run else result.curves.values()
    return [c.accuracy for c in curves if c.status == "trained" and c.accuracy is not None]


def _published(row: TableRow) -> float:
    assert row.accuracy is not None
    return row.accuracy


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    found = _accuracies(evidence)
    return [
        _mnist(found),
        _fitnets(found),
        _maxout_by_backpropagation(found),
        _thinner_than_the_teacher(found),
        _best_of_its_time(found),
    ]


def _mnist(found: Mapping[str, float]) -> Conclusion:
    peers = ("maxout-mnist", "dsn-mnist")
    if not {"highway-mnist-32", *peers} <= found.keys():
        return Conclusion()
    ours, theirs = found["highway-mnist-32"], [found[name] for name in peers]
    text = f"{ours:.2%} with 151K parameters; maxout {theirs[0]:.2%} with 420K, DSN {theirs[1]:.2%} with 350K"
    return Conclusion(
        text, competitive_verdict(ours, theirs), {name: found[name] for name in ("highway-mnist-32", *peers)}
    )


def _fitnets(found: Mapping[str, float]) -> Conclusion:
    """Compare with the published FitNets, and with our own if they are trained."""
    pairs: dict[str, tuple[float, float]] = {}
    for name in ("highway-a", "highway-b"):
        if name in found:
            peer = f"fitnet-{name[-1]}"
            pairs[f"{_ROWS[name].title}, published FitNet"] = (found[name], _published(_ROWS[f"{peer}-hints"]))
            for each in (peer, f"{peer}-hints"):
                if each in found:
                    pairs[f"{_ROWS[name].title}, our {_ROWS[each].title}"] = (found[name], found[each])
    if not pairs:
        return Conclusion()
    texts = [f"{name}: {ours:.2%}, {theirs:.2%}" for name, (ours, theirs) in pairs.items()]
    return Conclusion("; ".join(texts), at_least_verdict(list(pairs.values())), dict(pairs))


def _maxout_by_backpropagation(found: Mapping[str, float]) -> Conclusion:
    if "fitnet-a" not in found:
        return Conclusion()
    ours, hints = found["fitnet-a"], _published(_ROWS["fitnet-a-hints"])
    text = f"FitNet A, 11 layers, by backpropagation with our recipe: {ours:.2%}; published with hints: {hints:.2%}"
    return Conclusion(text, untrainable_verdict(ours, hints), {"fitnet-a": ours, "published with hints": hints})


def _thinner_than_the_teacher(found: Mapping[str, float]) -> Conclusion:
    if not {"highway-c", "maxout"} <= found.keys():
        return Conclusion()
    ours, theirs = found["highway-c"], found["maxout"]
    text = f"Highway C {ours:.2%}, maxout teacher {theirs:.2%}"
    return Conclusion(text, at_least_verdict([(ours, theirs)]), {"highway-c": ours, "maxout": theirs})


def _best_of_its_time(found: Mapping[str, float]) -> Conclusion:
    """Compare with the best published peers of Table 3."""
    pairs = {}
    for source in ("cifar10", "cifar100"):
        name = f"highway-19-nin-{source}"
        if name in found:
            peers = [
                row
                for row in TABLE_ROWS
                if row.table == _ROWS[name].table and row.data == _ROWS[name].data and row.name != name
            ]
            pairs[_ROWS[name].data] = (found[name], max(map(_published, peers)))
    if len(pairs) < 2:
        return Conclusion()
    texts = [f"{data} {ours:.2%}, best published peer {theirs:.2%}" for data, (ours, theirs) in pairs.items()]
    return Conclusion("; ".join(texts), near_verdict(list(pairs.values())), dict(pairs))


TABLES_TEXT = ClaimExperiment(
    "tables",
    "Tables 1 to 3",
    (
        PaperStatement(
            "3.2",
            "On MNIST, a convolutional highway network of 10 layers is competitive with far fewer parameters.",
            "Agrees if width 32 comes within 0.1 points of the better of maxout and DSN, differs in part if of one.",
            "Our recipes make the peers better than they were published, too.",
        ),
        PaperStatement(
            "3.3",
            "Highway networks of the size of FitNets A and B are as accurate, trained in a single stage without hints.",
            "Agrees if Highway A and B are at least as accurate as the FitNets, within 0.1 points; networks that are "
            "not trained to their end are left out, and published values stand in for FitNets that are not.",
        ),
        PaperStatement(
            "3.3",
            "A thin maxout network of 11 layers, FitNet A, can be trained with hints only.",
            "For the network of 11 layers: agrees if backpropagation alone reaches less than half of the accuracy "
            "published with hints, differs in part if less than it, disagrees otherwise.",
            "Our recipe has Muon, a one-cycle schedule and He's initialisation, none of which the FitNets of 2014 had. "
            "The limit seems to be one of the training.",
        ),
        PaperStatement(
            "3.3",
            "A thin highway network of 32 layers is more accurate than the wide maxout teacher of 5 layers.",
            "Agrees if Highway C is at least as accurate as the teacher, both trained to their end.",
        ),
        PaperStatement(
            "3.3.2",
            "The 19-layer network competes with the best of its time on CIFAR-10 and CIFAR-100.",
            "Agrees if it comes within a point of the best published accuracy of the peers on both sets, trained to "
            "its end, differs in part if on one.",
        ),
    ),
    _conclude,
    protocol="the numbers are those of `verydeep reproduce table1`, `table2` and `table3`, with the better of our "
    "recipes",
)
