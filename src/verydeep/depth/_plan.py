"""What `how_deep` is going to train: which depths, how many settings, seeds and epochs, within a budget."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DepthPlan:
    """What is trained; fixed after the first epochs were timed, and stored.

    Attributes:
        most: The depth of the deepest networks.
        depths: The depths that are trained first; more follow between the answer and the next smaller one.
        kinds: The kinds of network, `highway` and `plain`.
        trials: How many settings are tried for each kind and depth.
        kept: How many of them are trained to the end of the short schedule of the search.
        search_epochs: The epochs of that schedule.
        finalists: How many settings of each kind and depth are trained with all seeds.
        seeds: How many seeds each of those is trained with.
        folds: Into how many parts the training data is divided; each seed holds out another part.
        epochs: The epochs of these trainings, at most; they stop early.
        batch_size: Samples per update.
        widths: The widths that are tried.
        minutes: The time that was asked for; None if the epochs were.
        total_epochs: The epochs of all trainings together that were asked for; None if the time was.
        refinements: How many depths may be added between the answer and the next smaller one.
        core_seconds: The predicted time of all trainings on one core; 0 if epochs were asked for.
        jobs: The number of workers.
        seed: The seed from which everything random follows.

    Example:
        >>> from verydeep.depth import DepthPlan
        >>> DepthPlan(depths=(0, 1, 2, 4), trials=6).depths[-1]
        4
    """

    most: int = 50
    depths: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ("highway", "plain")
    trials: int = 0
    kept: int = 0
    search_epochs: int = 0
    finalists: int = 1
    seeds: int = 0
    folds: int = 0
    epochs: int = 0
    batch_size: int = 0
    widths: tuple[int, ...] = ()
    minutes: float | None = None
    total_epochs: int | None = None
    refinements: int = 0
    core_seconds: float = 0.0
    jobs: int = 1
    seed: int = 0
