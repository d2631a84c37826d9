"""The processor: cores that are free, and settings while our code runs.

The settings are the number of threads, and denormal numbers treated as zero. Vanishing gradients become denormal
numbers, on which x86 processors are ten times slower. Everything in the library that computes runs inside
`cpu_settings`, so a call from Python gives the same bits as a command and leaves the process unchanged.
"""

import ctypes
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """The number of cores that this process may use, according to its affinity and its control groups."""
    return max(1, math.floor(min(len(_allowed_cores()), _cgroup_limit())))


def idle_cores(seconds: float = 0.2) -> float:
    """How many of its cores this process could have for itself now, such as 1.3; work of lower priority does not count.

    Args:
        seconds: How long to watch what the others do, during which this thread sleeps.
    """
    cores = _allowed_cores()
    try:
        before, start = _free_seconds(), time.monotonic()
        time.sleep(seconds)
        after, elapsed = _free_seconds(), time.monotonic() - start
    except (OSError, ValueError):  # not Linux
        with suppress(OSError, AttributeError):
            return min(usable_cores(), max(0.0, len(cores) - os.getloadavg()[0]))
        return usable_cores()
    free = sum(min(1.0, (after[core] - before[core]) / elapsed) for core in cores if core in before and core in after)
    return min(usable_cores(), free)


def _allowed_cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def _free_seconds() -> dict[int, float]:
    """For each core, the seconds since the system started in which this process could have had it."""
    ticks, free = os.sysconf("SC_CLK_TCK"), {}
    for line in (_PROC / "stat").read_text().splitlines():
        name, *counts = line.split()
        if name.startswith("cpu") and name != "cpu":
            _user, nice, _system, idle, waiting = map(int, counts[:5])
            lower_priority = nice if os.getpriority(os.PRIO_PROCESS, 0) <= 0 else 0
            free[int(name[3:])] = (idle + waiting + lower_priority) / ticks
    return free


def _cgroup_limit() -> float:
    """The number of cores that Linux's control groups allow this process; infinite if there is no limit."""
    limits = [math.inf]
    with suppress(OSError, ValueError):
        for line in (_PROC / "self" / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            root = _CGROUPS / "cpu" if controllers else _CGROUPS  # of version 1, or of version 2
            folder = root / path.lstrip("/")
            limits += [_quota(one) for one in (folder, *folder.parents) if one.is_relative_to(root)]
    return min(limits)


def _quota(folder: Path) -> float:
    """The limit of one control group."""
    with suppress(OSError, ValueError):
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(quota) / int(period) if quota != "max" and int(quota) > 0 else math.inf
    return math.inf


@contextmanager
def cpu_settings(threads: int | None = None) -> Iterator[None]:
    """Treat denormal numbers as zero and use `threads` threads (by default, as many as before) inside the block."""
    import torch

    flushed, before = flushes_denormals(), torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    _flush_denormals(True)
    try:
        yield
    finally:
        _flush_denormals(flushed)
        if threads is not None:
            torch.set_num_threads(before)


def flushes_denormals() -> bool:
    """Whether this thread treats denormal numbers as zero; torch can set this but not report it."""
    import torch

    return bool(torch.full((), 1e-38) * 0.01 == 0)


def _flush_denormals(flush: bool) -> None:
    """Flush denormal numbers, or stop doing so, in this thread and in torch's OpenMP threads.

    OpenMP threads inherit the setting when they are started and keep it; torch.set_flush_denormal changes the calling
    thread only. Without this, results would depend on what was computed before.
    """
    import torch

    torch.set_flush_denormal(flush)
    if torch.get_num_threads() == 1 or _forked:
        return
    try:
        parallel = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):  # another operating system, or a torch without OpenMP
        return

    def set_thread(_: object) -> None:
        torch.set_flush_denormal(flush)

    parallel(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(set_thread), None, torch.get_num_threads(), 0)


_forked = False  # OpenMP's threads do not survive a fork, and waiting for them would hang


def _note_fork() -> None:
    global _forked  # noqa: PLW0603
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
