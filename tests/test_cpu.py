"""Free cores, and the settings of the processor while our code runs."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from verydeep import cpu
from verydeep.cpu import cpu_settings, flushes_denormals, idle_cores, usable_cores


def test_settings_hold_inside_and_not_after() -> None:
    threads = torch.get_num_threads()
    assert not flushes_denormals()
    with cpu_settings(threads + 1):
        assert flushes_denormals()
        assert torch.get_num_threads() == threads + 1
        with cpu_settings():
            assert flushes_denormals()
            assert torch.get_num_threads() == threads + 1
        assert flushes_denormals()
    assert not flushes_denormals()
    assert torch.get_num_threads() == threads


THREADS = """
import pytest
import torch
from verydeep.cpu import cpu_settings

def flushed():
    tiny = torch.full((1_000_000,), 2e-38) * 0.01  # the last part is computed by another thread than the first
    return [not tiny[part].view(torch.int32).any() for part in (slice(100), slice(-100, None))]

torch.set_num_threads(2)
{first}
with cpu_settings({threads}):
    assert flushed() == [True, True], flushed()
assert flushed() == [False, False], flushed()
"""


@pytest.mark.slow
def test_all_threads_of_torch_follow_whether_they_were_there_before_or_not() -> None:
    for first, threads in (("flushed()", ""), ("", "3")):
        code = THREADS.format(first=first, threads=threads)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def write_cgroup(folder: Path, line: str, **files: str) -> None:
    """A process in a control group, with the files of the group's folder below the root."""
    (folder / "self").mkdir(parents=True)
    (folder / "self" / "cgroup").write_text(line)
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("cpu_", "cpu.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.mark.parametrize(
    ("line", "files", "cores"),
    [
        ("0::/a/b\n", {"a__cpu_max": "250000 100000\n", "a__b__cpu_max": "max 100000\n"}, 2),
        ("0::/\n", {"cpu_max": "50000 100000\n"}, 1),
        ("0::/\n", {}, 8),
        ("4:cpu,cpuacct:/x\n", {"cpu__x__cpu_cfs_quota_us": "300000", "cpu__x__cpu_cfs_period_us": "100000"}, 3),
        ("4:cpu,cpuacct:/x\n", {"cpu__x__cpu_cfs_quota_us": "-1", "cpu__x__cpu_cfs_period_us": "100000"}, 8),
        ("4:memory:/x\n", {"x__cpu_max": "100000 100000"}, 8),
        ("nonsense\n", {}, 8),
    ],
)
def test_control_groups_limit_the_cores(
    line: str, files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cgroup(tmp_path, line, **files)
    monkeypatch.setattr(cpu, "_PROC", tmp_path)
    monkeypatch.setattr(cpu, "_CGROUPS", tmp_path)
    monkeypatch.setattr(cpu, "_allowed_cores", lambda: list(range(8)))
    assert usable_cores() == cores


def test_cores_are_free_if_they_idle_or_do_work_of_lower_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks, stat = os.sysconf("SC_CLK_TCK"), tmp_path / "stat"

    def write(*idle: int) -> None:
        rows = [f"cpu{n} 0 {nice * ticks} 0 {idle * ticks} 0 0" for n, (nice, idle) in enumerate([(0, 0), idle[:2]])]
        rows.append(f"cpu2 0 0 0 {idle[2] * ticks} 0 0")
        stat.write_text("cpu 1 2 3 4 5 6\n" + "\n".join(rows) + "\nintr 1 2\n")

    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += 2.0
        write(1, 1, 1)  # in 2 seconds: core 0 is busy, core 1 idle or working at low priority, core 2 half idle

    write(0, 0, 0)
    monkeypatch.setattr(cpu, "_PROC", tmp_path)
    monkeypatch.setattr(cpu, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(os, "getpriority", lambda *_: 0)
    for cores, free in (([0, 1, 2], 1.5), ([0], 0.0), ([1, 2], 1.5), ([0, 2], 0.5)):
        write(0, 0, 0)
        monkeypatch.setattr(cpu, "_allowed_cores", lambda cores=cores: cores)
        assert idle_cores() == pytest.approx(free)
    write(0, 0, 0)
    monkeypatch.setattr(os, "getpriority", lambda *_: 10)  # then that work is of no lower priority
    monkeypatch.setattr(cpu, "_allowed_cores", lambda: [0, 1, 2])
    assert idle_cores() == pytest.approx(1.0)


def test_where_linux_does_not_tell_the_load_average_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "_PROC", tmp_path)
    monkeypatch.setattr(cpu, "_allowed_cores", lambda: list(range(8)))
    monkeypatch.setattr(os, "getloadavg", lambda: (2.5, 0.0, 0.0))
    assert idle_cores(0.0) == 5.5
