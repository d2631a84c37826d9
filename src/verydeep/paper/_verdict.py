"""Whether our numbers agree with what the paper says."""

from typing import Literal

Verdict = Literal["agrees", "differs in part", "disagrees"]


def share_verdict(count: int, total: int) -> Verdict:
    """Agrees if all of some cases hold, disagrees if at most half of them do."""
    return "agrees" if count == total else "differs in part" if 2 * count > total else "disagrees"


def any_verdict(count: int, total: int) -> Verdict:
    """Agrees if all of some cases hold, disagrees if none does."""
    return "agrees" if count == total else "differs in part" if count else "disagrees"
