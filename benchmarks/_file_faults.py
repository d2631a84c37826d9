"""Faults in file operations, for tests and campaigns: kills, full disks, I/O errors, short writes, lost power.

    faults = FileFaults(folder)                            # compiles _file_faults.c with the C compiler of the machine
    process = Popen(command, env=os.environ | faults.environment)
    faults.plan(watched, "kill", at=17)                    # before or after the start of the process
    faults.count, faults.met, faults.operation             # how many operations; whether and where the fault happened

Operations are opening for writing, writing, renaming, linking, syncing, truncating, creating and removing, of files and
folders below `watched`, by any process that was started with the environment, and its children. With `reads`, opening
for reading and reading count, too. Actions:

    count       nothing happens
    kill        SIGKILL in place of operation `at`
    fail        that operation fails with `error`, others do not; files can be removed from a full disk
    fail on     all operations from there on fail
    short       the next write from there on writes half of its bytes, and says so
    tear        the same, and then SIGKILL
    power       SIGKILL, and everything is undone that no fsync has brought to the disk: data of files, renames
"""

import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

ACTIONS = ("count", "kill", "fail", "fail on", "short", "tear", "power")
VARIABLE = "VERYDEEP_FAULTS"
_HEAD = struct.Struct("=qqiiii1024s1024s")  # struct plan in _file_faults.c


def compiler() -> str | None:
    """The C compiler of this machine, or None."""
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


class FileFaults:
    """One plan, shared by all processes that were started with its environment.

    Args:
        folder: Where the compiled library and the plan are kept; it must not be watched.
    """

    def __init__(self, folder: Path) -> None:
        self.library, self.path = folder / "file_faults.so", folder / "file_faults.plan"
        if not self.library.exists():
            found = compiler()
            if found is None:
                raise FileNotFoundError("no C compiler: apt-get install gcc")
            source = Path(__file__).with_suffix(".c")
            subprocess.run([found, "-O1", "-shared", "-fPIC", "-o", str(self.library), str(source)], check=True)
        if not self.path.exists():
            self.path.write_bytes(bytes(_HEAD.size))
        with self.path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _HEAD.size)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of processes that meet the faults."""
        return {"LD_PRELOAD": str(self.library), VARIABLE: str(self.path)}

    def plan(
        self, watched: Path | None, action: str = "count", at: int = 1, error: int = 0, reads: bool = False
    ) -> None:
        """Count from zero again, and let a fault happen; None watches nothing."""
        folder = os.fsencode(watched) if watched else b""
        self._memory[:] = _HEAD.pack(0, at, ACTIONS.index(action), error, reads, 0, folder, b"")

    @property
    def count(self) -> int:
        """The number of operations since the plan was made."""
        return int(_HEAD.unpack(self._memory[:])[0])

    @property
    def met(self) -> bool:
        """Whether the fault has happened."""
        return bool(_HEAD.unpack(self._memory[:])[5])

    @property
    def operation(self) -> str:
        """The operation that met the fault, such as `rename /folder/file`."""
        return os.fsdecode(_HEAD.unpack(self._memory[:])[7].rstrip(b"\0"))
