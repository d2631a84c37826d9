"""Whether others want the cores that this process computes on."""

import time

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_INTERVAL = 0.1  # seconds between two looks
_MANY = 40  # preemptions per second: others want our cores; alone on its cores, a process has a few
_CALM = 10  # intervals without as many, after which they do not any more


class Contention:
    """Counts how often the system takes a core away from a thread of this process that still has work."""

    def __init__(self) -> None:
        self._time, self._preemptions = time.monotonic(), _preemptions()
        self._calm_intervals, self._noticed = 0, False

    def noticed(self) -> bool:
        """Whether threads of this process have recently been preempted often."""
        now = time.monotonic()
        if now - self._time < _INTERVAL:
            return self._noticed
        preemptions = _preemptions()
        often = preemptions - self._preemptions > _MANY * (now - self._time)
        self._time, self._preemptions = now, preemptions
        self._calm_intervals = 0 if often else self._calm_intervals + 1
        self._noticed = often or (self._noticed and self._calm_intervals < _CALM)
        return self._noticed


def _preemptions() -> int:
    """The number of times that threads of this process had to give way to others."""
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
