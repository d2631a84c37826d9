"""Machines on one machine: network namespaces on a bridge, each with a host name and a disk of its own (needs root).

The disks are folders. Every machine sees its own at the path `Network.disk`, and those of the others are hidden by a
mount namespace. The folder `Network.shared` is visible on machines that mount it.
"""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType

ADDRESS = "10.93.0.{}"
_BRIDGE = "verydeep-br"

# Arguments: folder of the network, number of the machine, whether it mounts the shared folder, command.
_ENTER = """
set -e
folder=$1 number=$2 shared=$3
shift 3
hostname machine-$number
mount --bind $folder/machine-$number $folder/disk
for hidden in $folder/machine-*; do mount -t tmpfs hidden $hidden; done
if [ $shared = no ]; then mount -t tmpfs hidden $folder/shared; fi
export HOME=$folder/disk TMPDIR=$folder/disk
cd $folder/disk
exec "$@"
"""


def missing() -> str | None:
    """What this machine lacks for it, or None."""
    if os.getuid() != 0:
        return "network namespaces need root"
    absent = [tool for tool in ("ip", "unshare", "mount", "hostname") if shutil.which(tool) is None]
    return f"{', '.join(absent)} not found: apt-get install iproute2 util-linux hostname" if absent else None


class Network(AbstractContextManager["Network"]):
    """Some machines, numbered from 1, and a bridge that reaches them all, while the context lasts."""

    def __init__(self, machines: int) -> None:
        self.machines = range(1, machines + 1)
        self.folder = Path(tempfile.mkdtemp(prefix="verydeep-machines-", dir="/var/tmp"))
        self.disk, self.shared = self.folder / "disk", self.folder / "shared"

    @property
    def address(self) -> str:
        """The address of the bridge, where a server can listen."""
        return ADDRESS.format(1)

    def __enter__(self) -> "Network":
        for folder in (self.disk, self.shared, *map(self.real_disk, self.machines)):
            folder.mkdir()
        try:
            _ip(f"link add {_BRIDGE} type bridge")
            _ip(f"addr add {self.address}/24 dev {_BRIDGE}")
            _ip(f"link set {_BRIDGE} up")
            for number in self.machines:
                self._connect(number)
        except BaseException:
            self._remove()
            raise
        return self

    def _connect(self, number: int) -> None:
        name, inside = f"verydeep-{number}", f"vd-in-{number}"
        _ip(f"netns add {name}")
        _ip(f"link add vd-out-{number} type veth peer name {inside}")
        _ip(f"link set {inside} netns {name}")
        _ip(f"link set vd-out-{number} master {_BRIDGE} up")
        _ip(f"-n {name} addr add {ADDRESS.format(number + 1)}/24 dev {inside}")
        _ip(f"-n {name} link set {inside} up")
        _ip(f"-n {name} link set lo up")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        for number in self.machines:
            with suppress(subprocess.CalledProcessError):
                for pid in _ip(f"netns pids verydeep-{number}").split():
                    os.kill(int(pid), signal.SIGKILL)
            for command in (f"netns del verydeep-{number}", f"link del vd-out-{number}"):
                with suppress(subprocess.CalledProcessError):
                    _ip(command)
        with suppress(subprocess.CalledProcessError):
            _ip(f"link del {_BRIDGE}")
        shutil.rmtree(self.folder)

    def real_disk(self, number: int) -> Path:
        """The folder that a machine sees as its disk."""
        return self.folder / f"machine-{number}"

    def set_cable(self, number: int, plugged: bool) -> None:
        """Pull a machine's network cable, or plug it in."""
        _ip(f"link set vd-out-{number} {'up' if plugged else 'down'}")

    def on(self, number: int, *command: str, shared: bool = False) -> list[str]:
        """The command that runs a command on a machine, in the same process."""
        enter = ["sh", "-c", _ENTER, "enter", str(self.folder), str(number), "yes" if shared else "no"]
        return ["ip", "netns", "exec", f"verydeep-{number}", "unshare", "--mount", "--uts", *enter, *command]


def _ip(command: str) -> str:
    return subprocess.run(["ip", *shlex.split(command)], check=True, capture_output=True, text=True).stdout
