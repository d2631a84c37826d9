"""A private SLURM of one node for tests and benchmarks: Debian's binaries, free ports and a folder of its own."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType

_NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "setpriv")
INSTALL = "apt-get install --no-install-recommends munge slurmctld slurmd slurm-client"

# Nothing that needs a database or control groups: it runs in a container, as root or as any other user.
_SLURM_CONF = """
ClusterName=verydeep
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
_CGROUP_CONF = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=no\n"


def installed() -> bool:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return all(shutil.which(name, path=path) for name in _NEEDED)


class Slurm(AbstractContextManager["Slurm"]):
    """Runs while the context lasts; the daemons are children of this process and die with it."""

    def __init__(self) -> None:
        # A socket's path must be short, and munged wants a folder that others cannot write.
        self.folder = Path(tempfile.mkdtemp(prefix="vd-slurm-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.environment = os.environ | {
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
        }
        self._daemons = ExitStack()

    def __enter__(self) -> "Slurm":
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def run(self, *command: str | Path) -> str:
        """Run one of SLURM's commands and return what it prints."""
        words = [str(word) for word in command]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def states(self, job: str) -> dict[str, str]:
        """The state of every task of a job, such as {"0": "RUNNING", "1": "PENDING"}."""
        listed = self.run("scontrol", "--oneliner", "show", "job", job).splitlines()
        tasks = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in listed]
        return {task.get("ArrayTaskId", ""): task["JobState"] for task in tasks}

    def _start(self) -> None:
        host, memory = socket.gethostname().split(".")[0], os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        ports = _free_ports(2)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        (self.folder / "cgroup.conf").write_text(_CGROUP_CONF)
        (self.folder / "slurm.conf").write_text(
            _SLURM_CONF.format(
                folder=self.folder,
                host=host,
                user=pwd.getpwuid(os.getuid()).pw_name,
                controller_port=ports[0],
                node_port=ports[1],
                memory=memory // 2**20 // 2,
            )
        )
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = [f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        self._daemon("munged", "--foreground", f"--socket={self.folder}/munge.socket", *files)
        while not (self.folder / "munge.socket").exists():
            time.sleep(0.05)
        self._daemon("slurmctld", "-D")
        self._daemon("slurmd", "-D")
        while "idle" not in self._quietly("sinfo", "--noheader", "--format=%t"):
            time.sleep(0.1)

    def _daemon(self, *command: str) -> None:
        log = (self.folder / f"{command[0]}.out").open("wb")
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *command],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        self._daemons.callback(log.close)
        self._daemons.callback(process.wait)
        self._daemons.callback(process.terminate)

    def _stop(self) -> None:
        self._quietly("scancel", "--me")
        while self._quietly("squeue", "--noheader", "--me"):
            time.sleep(0.1)
        self._daemons.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _quietly(self, *command: str) -> str:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        return done.stdout.strip()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        found = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]
