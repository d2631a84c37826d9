"""How much memory this process may still take; sizes that a file declares are compared with it before it is read."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from verydeep.errors import UserError

_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def available_memory() -> int:
    """The number of bytes that the system, its control group and `ulimit -v` leave to this process."""
    return min(_limits(), default=sys.maxsize)


def require_memory(size: int, what: str) -> None:
    """Raise a `UserError` if less memory is left.

    Args:
        size: In bytes.
        what: What needs it, as the beginning of the message, such as `the weights of this network`.
    """
    left = available_memory()
    if size > left:
        raise UserError(f"not enough memory: {what} need {size / 1e9:,.1f} GB, and {left / 1e9:,.1f} GB are available")


def _limits() -> Iterator[int]:
    with suppress(OSError, ValueError, KeyError, IndexError):
        lines = dict(line.split(":", 1) for line in (_PROC / "meminfo").read_text().splitlines())
        yield int(lines["MemAvailable"].split()[0]) * 1024
    with suppress(OSError, ValueError):
        group = _CGROUPS / (_PROC / "self" / "cgroup").read_text().rpartition("::")[2].strip().lstrip("/")
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):  # "max" is no limit
                yield int((folder / "memory.max").read_text()) - int((folder / "memory.current").read_text())
    if sys.platform != "win32":
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            with suppress(OSError, ValueError, IndexError):
                taken = int((_PROC / "self" / "statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
                yield limit - taken
