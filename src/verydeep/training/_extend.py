"""Changing the number of epochs of a run that exists: what is refused, and what else changes."""

from verydeep.errors import UserError
from verydeep.training._config import TrainConfig
from verydeep.training.run._run import Run
from verydeep.words import plural


def check_new_total(run: Run, epochs: int) -> None:
    """Raise a `UserError` if a run cannot have this number of epochs."""
    summary, metrics = run.summary, run.metrics
    if summary is not None and summary.status in ("diverged", "pruned", "attended"):
        diverged = summary.status == "diverged"
        made = "pruned" if summary.status == "pruned" else "made"
        what = "diverged" if diverged else f"was {made} from another run, not trained"
        way_out = "with a lower learning rate" if diverged else "from its weights with init"
        raise UserError(f"{run.path} {what}, so it cannot be continued; start a new run {way_out}")
    done = summary.epochs if summary is not None else metrics[-1].epoch if metrics else 0
    if epochs < done:
        raise UserError(f"epochs = {epochs}, but {run.path} has already completed {plural(done, 'epoch')}")


def describe_stretch(config: TrainConfig) -> str:
    """Which settings depend on the number of epochs, in one line; empty if none does."""
    parts = list[str]()
    if config.schedule.name in ("one-cycle", "cosine") or (config.distill.hint_epochs and not _is_constant(config)):
        parts.append(f"the {config.schedule.name} learning rate")
    if config.distill.teacher is not None:
        parts.append("the weight of the teacher")
    if not parts:
        return ""
    verb = "are" if len(parts) > 1 else "is"
    return (
        f"{' and '.join(parts)} {verb} stretched over {plural(config.epochs, 'epoch')}: "
        "the result differs from that of a single run of this length"
    )


def _is_constant(config: TrainConfig) -> bool:
    return config.schedule.name == "constant"
