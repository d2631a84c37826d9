"""Whether others want the cores that this process computes on."""

import time

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_INTERVAL = 0.2  # seconds of looking: in shorter ones, a few preemptions by chance look like many
_MANY = 100  # preemptions per second; with the cores to itself, a process sees up to 50, and beside one busy loop 150
_SHORTEST, _LONGEST = 1.0, 30.0  # seconds until the next look, once contention was noticed


class Contention:
    """Counts how often the system takes a core away from a thread of this process that still has work.

    What is done about contention changes these counts: threads that yield a core to each other are counted, too. So
    nothing is counted for a while after contention was noticed, and longer each time that it is noticed again.
    """

    def __init__(self) -> None:
        self._pause, self._until = _SHORTEST, 0.0
        self._start_looking(time.monotonic())

    def noticed(self) -> bool:
        """Whether threads of this process have recently been preempted often."""
        now = time.monotonic()
        if now < self._until:
            return True
        if self._until > self._since:  # the pause is over
            self._start_looking(now)
        elif now - self._since > _INTERVAL:
            often = _preemptions() - self._preemptions > _MANY * (now - self._since)
            self._start_looking(now)
            if often:
                self._until = now + self._pause
            self._pause = min(2 * self._pause, _LONGEST) if often else max(self._pause / 2, _SHORTEST)
            return often
        return False

    def _start_looking(self, now: float) -> None:
        self._since, self._preemptions = now, _preemptions()


def _preemptions() -> int:
    """The number of times that threads of this process had to give way to others."""
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
