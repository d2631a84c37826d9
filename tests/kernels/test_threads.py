"""Whoever runs the pieces of some work, and however many do, the bits are the same, and nobody waits for a sleeper."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread, enumerate as enumerate_threads
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from verydeep import kernels
from verydeep.cpu import cpu_settings
from verydeep.kernels.runtime import _contention, _pool, _threads
from verydeep.kernels.runtime._contention import Contention
from verydeep.kernels.runtime._openmp import OpenMP
from verydeep.kernels.runtime._pool import ThreadPool
from verydeep.kernels.runtime._pool_loops import SLEEPING
from verydeep.models import MLP, create_model
from verydeep.nn import HighwayConv2d, HighwayStack

linux = pytest.mark.skipif(sys.platform != "linux", reason="GNU OpenMP is torch's on Linux")


@pytest.fixture
def use_pool(monkeypatch: pytest.MonkeyPatch) -> Callable[[ThreadPool], None]:
    """Run all work on this pool."""
    return lambda pool: monkeypatch.setattr(_threads, "_threads", pool)


def dense_step() -> list[Tensor]:
    torch.manual_seed(0)
    model, x = create_model("highway-mlp", depth=6, width=20), torch.randn(150, 1, 28, 28)
    assert isinstance(model, MLP)
    model.backward_cross_entropy(x, torch.arange(150) % 10, 1 / 150)
    return [model(x).detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


def conv_step() -> list[Tensor]:
    torch.manual_seed(0)
    layer, x = HighwayConv2d(16, backend="fused"), torch.randn(9, 16, 12, 12)
    y = layer(x)
    return [y.detach(), *torch.autograd.grad(y.square().sum(), list(layer.parameters()))]


def same(a: list[Tensor], b: list[Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("step", [dense_step, conv_step])
@pytest.mark.parametrize("threads", [2, 4])
def test_any_number_of_executing_threads_gives_the_same_bits(
    step: Callable[[], list[Tensor]], threads: int, use_pool: Callable[[ThreadPool], None]
) -> None:
    with cpu_settings(threads):
        expected = step()
        for helpers in (0, 1, 2):
            pool = ThreadPool(helpers)
            use_pool(pool)
            assert all(same(step(), expected) for _ in range(10))
            assert len(pool._helpers) == min(helpers, threads - 1)
            pool.stop()


def test_a_helper_that_never_wakes_does_not_block(
    use_pool: Callable[[ThreadPool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ThreadPool, "_start_helper", lambda pool: Thread())  # it is never started
    with cpu_settings(4):
        expected = dense_step()
        pool = ThreadPool(3)
        use_pool(pool)
        assert same(dense_step(), expected)
        assert pool._shared is not None
        pool._shared._memory[SLEEPING] = 3  # as if all were asleep: the pipe fills, since nobody reads it
        assert all(same(dense_step(), expected) for _ in range(50))


def test_helpers_that_slept_are_woken(use_pool: Callable[[ThreadPool], None]) -> None:
    with cpu_settings(2):
        expected, pool = dense_step(), ThreadPool(1)
        use_pool(pool)
        assert same(dense_step(), expected)
        assert pool._shared is not None
        while not pool._shared._memory[SLEEPING]:
            pass
        assert all(same(dense_step(), expected) for _ in range(10))
        pool.stop()
        for helper in pool._helpers:
            helper.join()


def test_several_threads_of_python_share_a_pool(use_pool: Callable[[ThreadPool], None]) -> None:
    module, inputs = HighwayStack(10, 8, backend="fused"), [torch.randn(60 + n, 10) for n in range(6)]
    with cpu_settings(3), torch.no_grad():
        expected, pool = [module(x) for x in inputs], ThreadPool(2)
        use_pool(pool)
        with ThreadPoolExecutor(6) as callers:
            for _ in range(20):
                assert same(list(callers.map(module, inputs)), expected)
        pool.stop()


def test_a_pool_works_after_an_interrupt(
    use_pool: Callable[[ThreadPool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    compiled = _pool.pool_kernels()
    with cpu_settings(2):
        expected, pool = dense_step(), ThreadPool(1)
        use_pool(pool)
        monkeypatch.setattr(_pool, "pool_kernels", lambda: compiled._replace(lead=cast("Any", interrupt)))
        with pytest.raises(KeyboardInterrupt):
            dense_step()
        monkeypatch.setattr(_pool, "pool_kernels", lambda: compiled)
        assert same(dense_step(), expected)
        assert not pool._lock.locked()
        pool.stop()


def test_helpers_treat_denormal_numbers_as_the_caller_does(use_pool: Callable[[ThreadPool], None]) -> None:
    z, x = torch.zeros(8, 2, 2**14), torch.full((8, 1, 2**14), 1.5e-38)  # y = x / 2, which is denormal
    pool = ThreadPool(3)
    use_pool(pool)
    with cpu_settings(4):
        assert not any(kernels.highway_gate(z, x, 2, -2, "relu").view(torch.int32).any() for _ in range(50))
    torch.set_num_threads(4)
    try:
        assert all(kernels.highway_gate(z, x, 2, -2, "relu").view(torch.int32).all() for _ in range(50))
    finally:
        torch.set_num_threads(1)
        pool.stop()


@linux
def test_contention_changes_who_works_and_not_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, contended = _threads._Threads(), SimpleNamespace(noticed=lambda: False)
    monkeypatch.setattr(_threads, "_threads", threads)
    monkeypatch.setattr(threads, "_contention", contended)
    with cpu_settings(2):
        expected = dense_step()
        for noticed in (True, False, True, True, False):
            contended.noticed = lambda noticed=noticed: noticed
            assert same(dense_step(), expected)
            assert threads._openmp is not None
            assert (threads._openmp._more_threads is not None) == noticed
        contended.noticed = lambda: True
        assert same(dense_step(), expected)
        kernels.restore_waits()  # as at the end of a training
        assert cast("OpenMP", threads._openmp)._more_threads is None
    threads.pool.stop()


@linux
def test_waits_are_shortened_once_and_restored_once() -> None:
    openmp, before = OpenMP(), parked_threads()
    for _ in range(2):
        openmp.shorten_waits()
        assert parked_threads() == before + 1
    for _ in range(2):
        openmp.restore_waits()
        assert parked_threads() == before


def parked_threads() -> int:
    """Count these only: threads of earlier tests may end at any time."""
    return sum(thread.name == "verydeep-parked" for thread in enumerate_threads())


def test_contention_is_noticed_from_preemptions_and_forgotten_when_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now, preemptions = [0.0], [0]
    monkeypatch.setattr(_contention, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(_contention, "_preemptions", lambda: preemptions[0])
    contention = Contention()

    def after(seconds: float, more: int) -> bool:
        now[0] += seconds
        preemptions[0] += more
        return contention.noticed()

    assert not after(0.3, 2)
    assert not after(0.01, 100)  # it does not look that often
    for pause in (1.0, 2.0, 4.0):  # longer each time that it is noticed again
        assert after(0.3, 100)
        assert after(0.9 * pause, 0)
        assert not after(0.2 * pause, 1000)  # what happens in between does not count
    assert not after(0.3, 2)
    assert not after(0.3, 2)
    assert after(0.3, 100)
    assert after(1.9, 0)
    assert not after(0.2, 0)  # it was calm in between, so the pause was shorter


CONTENDED = """
import os, warnings
import torch
from verydeep.kernels.runtime._contention import Contention
from verydeep.nn import HighwayStack
Contention.noticed = lambda self: True
warnings.simplefilter("ignore")  # of Python, about forks with threads
torch.set_num_threads(2)
module, x = HighwayStack(9, 7, backend="fused"), torch.randn(40, 9)
expected = module(x)
"""
FORK = """
pid = os.fork()
found = module(x)
assert torch.equal(found, expected)
found.sum().backward()
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""


@pytest.mark.slow
@pytest.mark.parametrize("rest", ["", pytest.param(FORK, marks=linux)])
def test_a_process_with_a_pool_forks_and_exits(rest: str) -> None:
    done: Any = subprocess.run(
        [sys.executable, "-c", CONTENDED + rest], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
