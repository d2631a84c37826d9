"""What the attempts at one setting say, the first one first."""

from optuna.trial import FrozenTrial, TrialState

MOST_DEATHS = 10  # a setting that kills its worker so often without getting further would kill the next one too


def live(tries: list[FrozenTrial]) -> FrozenTrial | None:
    """The attempt that counts: the earliest that was not given up."""
    return next((trial for trial in tries if trial.state != TrialState.FAIL), None)


def epochs(trial: FrozenTrial) -> int:
    """How many an attempt has reported."""
    return max(trial.intermediate_values, default=0)


def deaths(tries: list[FrozenTrial]) -> int:
    """How often a worker died over a setting since an attempt got further than those before."""
    count = reached = 0
    for trial in tries:
        if epochs(trial) > reached:  # a long training may be killed often, and its settings not be at fault
            count, reached = 0, epochs(trial)
        count += trial.state == TrialState.FAIL and not trial.user_attrs.get("left")
    return count


def value_at(epoch: int, tries: list[FrozenTrial]) -> float | None:
    """What a setting had reached after an epoch; the same in every attempt, as far as it came."""
    return next((t.intermediate_values[epoch] for t in tries if epoch in t.intermediate_values), None)


def best(curve: list[float | None], maximise: bool) -> float | None:
    """The best value of a curve; None where there is none."""
    values = [value for value in curve if value is not None]
    return (max if maximise else min)(values) if values else None
