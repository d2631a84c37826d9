"""Versions and machine that a result was measured with; they are stored with every result."""

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from verydeep.redact import redact
from verydeep.training._torchrun import world_size
from verydeep.training.run._git import checked_out_commit

COMMAND = "VERYDEEP_COMMAND"  # the variable that tells a child process which command it belongs to


def environment() -> dict[str, Any]:
    """Versions, machine, threads, and the git commit if the working directory is a checkout."""
    import torch

    return {
        "verydeep": version("verydeep"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "processes": world_size(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "git": checked_out_commit(Path.cwd()),
        "command": command_line(),
    }


def command_line() -> str:
    """The command that a person started, without passwords; processes that train for another one name that one's."""
    program = Path(sys.argv[0])
    if COMMAND in os.environ:
        return os.environ[COMMAND]
    if not sys.argv[0]:
        return "python"
    if program.name == "ipykernel_launcher.py":
        return "a notebook"
    return redact("verydeep" if program.stem in ("verydeep", "__main__") else program.name, *sys.argv[1:])


def child_environment() -> dict[str, str]:
    """The environment variables for a process that trains in place of this one."""
    return os.environ | {COMMAND: command_line()}


def changed_environment(before: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Changes that can alter the last digits of a result: name, value before, value now."""
    now = environment()
    names = ("torch", "processor", "processes", "threads", "gpu")
    return [(name, before[name], now[name]) for name in names if name in before and before[name] != now[name]]


def _processor() -> str:
    """The processor's name according to the kernel; platform.processor() is empty on Linux."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
