import subprocess
import sys

import pytest
import torch

from verydeep.cpu import cpu_settings, flushes_denormals


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
