"""A private PostgreSQL server for tests and benchmarks: Debian's binaries; a socket, or an address with a password."""

import os
import shutil
import subprocess
import tempfile
from contextlib import AbstractContextManager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import TracebackType


def installed() -> Path | None:
    """The newest server's binaries, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found and find_spec("psycopg") else None


class Server(AbstractContextManager["Server"]):
    """Runs while the context lasts; root becomes the user postgres for it, as the server demands.

    Args:
        binaries: Where its programs are.
        address: Listen at this address, for the machines of its network; by default, only at a socket in its folder.
        password: What they need; the socket needs none.
    """

    def __init__(self, binaries: Path, address: str = "", password: str = "") -> None:
        self.binaries, self.address, self.password = binaries, address, password
        self._databases = count(1)
        # Not in pytest's own folder, which only its user may enter; a socket's path must also be short.
        self.folder = Path(tempfile.mkdtemp(prefix="vd-pg-", dir="/tmp"))
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self.folder.chmod(0o755)

    def __enter__(self) -> "Server":
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--no-locale")
        self.start()
        if self.address:
            with (Path(self.data) / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {self.address}/24 scram-sha-256\n")
            change = f"ALTER USER postgres PASSWORD '{self.password}'"
            self._run("psql", "-h", str(self.folder), "-U", "postgres", "-c", change)
            self._run("pg_ctl", "-D", self.data, "reload")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    @property
    def url(self) -> str:
        return self._url("postgres")

    def new_database(self) -> str:
        """Create a database and return its URL."""
        name = f"database{next(self._databases)}"
        self._run("createdb", "-h", str(self.folder), "-U", "postgres", name)
        return self._url(name)

    def _url(self, database: str) -> str:
        if self.address:
            return f"postgresql://postgres:{self.password}@{self.address}/{database}"
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='{self.address}' -c fsync=off"
        self._run("pg_ctl", "-D", self.data, "-w", "-o", options, "-l", str(self.folder / "log"), "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop", check=False)

    def _run(self, name: str, *arguments: str, check: bool = True) -> None:
        command = [str(self.binaries / name), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, done.stdout + done.stderr
