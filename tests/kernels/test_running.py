"""Kernels run in threads, in processes, with and without a cache."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from verydeep.kernels import stack
from verydeep.kernels.runtime import _buffers, _compile
from verydeep.nn import HighwayStack

STEP = """
import torch
from verydeep.nn import HighwayStack
torch.manual_seed(0)
torch.set_num_threads(2)
module = HighwayStack(9, 7, backend="fused")
x = torch.randn(40, 9)
y = module(x)
y.sum().backward()
reference = HighwayStack(9, 7, backend="reference")
reference.load_state_dict(module.state_dict())
z = reference(x)
z.sum().backward()
torch.testing.assert_close(y, z)
torch.testing.assert_close(module.weight.grad, reference.weight.grad)
"""

FORK = """
import os, torch
from verydeep.nn import HighwayStack
torch.set_num_threads(2)
module, x = HighwayStack(9, 7, backend="fused"), torch.randn(40, 9)
expected = module(x)
pid = os.fork()
found = module(x)
assert torch.equal(found, expected)
found.sum().backward()
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""


def run(code: str, **environment: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def step(module: HighwayStack, x: torch.Tensor) -> list[torch.Tensor]:
    x = x.clone().requires_grad_()
    weight, bias = (p.detach().clone().requires_grad_() for p in (module.weight, module.bias))
    y = stack(x, weight, bias, torch.arange(module.depth), "tanh", 1)[0]
    return [y.detach(), *torch.autograd.grad(y.square().sum(), (x, weight, bias))]


def same(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_the_same_number_of_threads_gives_the_same_bits(threads: int) -> None:
    module, x = HighwayStack(10, 12, backend="fused"), torch.randn(300, 10)
    alone = step(module, x)
    torch.set_num_threads(threads)
    try:
        first = step(module, x)
        assert all(same(step(module, x), first) for _ in range(20))
    finally:
        torch.set_num_threads(1)
    for found, expected in zip(first, alone, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_the_number_of_threads_may_change_between_forward_and_backward() -> None:
    module, x = HighwayStack(6, 5, backend="fused"), torch.randn(64, 6)
    y = module(x)
    torch.set_num_threads(4)
    try:
        y.sum().backward()
    finally:
        torch.set_num_threads(1)
    found = module.weight.grad
    module.weight.grad = None
    module(x).sum().backward()
    assert found is not None
    torch.testing.assert_close(found, module.weight.grad)


def test_many_threads_may_use_one_stack_at_once() -> None:
    module = HighwayStack(10, 20, backend="fused")
    inputs = [torch.randn(30 + n, 10) for n in range(8)]
    expected = [step(module, x) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            found = list(pool.map(lambda x: step(module, x), inputs))
            assert all(same(a, b) for a, b in zip(found, expected, strict=True))


def test_what_is_kept_for_a_backward_pass_is_not_lent_out_again_before_it() -> None:
    module = HighwayStack(10, 5, backend="fused")
    x = torch.randn(20, 10)
    y = module(x)
    for _ in range(10):
        module(torch.randn(20, 10)).sum().backward()
    module.zero_grad()
    y.sum().backward(retain_graph=True)
    found = module.weight.grad
    assert found is not None
    first = found.clone()
    y.sum().backward()
    torch.testing.assert_close(module.weight.grad, 2 * first)


def test_steps_of_one_size_need_no_new_memory() -> None:
    module, x = HighwayStack(16, 30, backend="fused"), torch.randn(64, 16)
    places = set()
    for _ in range(20):
        module.zero_grad()
        module(x).sum().backward()
        places.add(module.weight.grad.data_ptr())  # type: ignore[union-attr]
    assert len(places) <= 3
    assert len(_buffers._free) <= _buffers._KEPT


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    # Fused steps only: torch's own threads do not survive a fork.
    run(FORK)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that a process has filled."""
    folder = tmp_path_factory.mktemp("compiled")
    run(STEP, XDG_CACHE_HOME=str(folder))
    return folder


@pytest.mark.slow
def test_spawned_processes_share_the_cache(compiled: Path) -> None:
    assert {path.name for path in compiled.rglob("*.o")} == {"serve.o", "stack-2-tanh.o"}
    refuse = """
import verydeep.kernels.runtime._compile as compiler
def refuse(*_): raise AssertionError("compiled")
compiler._compile = refuse
"""
    run(refuse + STEP, XDG_CACHE_HOME=str(compiled))


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [lambda code: code[:1000], lambda code: b"", lambda code: b"x" + code[1:]])
def test_a_spoilt_cache_is_made_again(compiled: Path, spoil: Callable[[bytes], bytes]) -> None:
    (kept,) = compiled.rglob("stack*.o")
    whole = kept.read_bytes()
    kept.write_bytes(spoil(whole))
    run(STEP, XDG_CACHE_HOME=str(compiled))
    assert kept.read_bytes() == whole


@pytest.mark.slow
def test_without_a_folder_to_write_to_kernels_are_compiled_every_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run(STEP, XDG_CACHE_HOME=str(tmp_path / "file"))


@pytest.mark.slow
@pytest.mark.parametrize("feature", ["none", "avx512f"])
def test_registers_of_another_size_give_the_same_results(tmp_path: Path, feature: str) -> None:
    other = f"""
import llvmlite.binding as llvm
real = llvm.get_host_cpu_features()
class Features(dict):
    def flatten(self): return real.flatten()
llvm.get_host_cpu_features = lambda: Features({{{feature!r}: True}})
"""
    lanes = "from verydeep.kernels.ir._processor import LANES\nprint(LANES)"
    assert run(other + STEP + lanes, XDG_CACHE_HOME=str(tmp_path)).strip() == ("16" if feature == "avx512f" else "4")


@pytest.mark.slow
def test_importing_layers_compiles_nothing_and_loads_no_compiler() -> None:
    assert run("import sys, verydeep.nn; print('llvmlite' in sys.modules)").strip() == "False"


def test_the_code_of_kernels_is_found_by_their_sources_and_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of either gives other code, and none gives the same."""
    make = _compile._folder.__wrapped__  # what is remembered would hide it
    before = make()
    assert make() == before
    with monkeypatch.context() as changed:
        changed.setattr("verydeep.kernels.runtime._compile.llvm.get_host_cpu_name", lambda: "another")
        assert make() != before
    with monkeypatch.context() as changed:
        changed.setattr(Path, "read_bytes", lambda path: path.name.encode() + b"another")
        assert make() != before


@pytest.mark.parametrize("name", ["_formulas.py", "ir/_product.py", "dense/_stack_loops.py", "conv/_winograd.py"])
def test_a_change_of_any_source_in_any_folder_gives_other_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, read = _compile._folder.__wrapped__, Path.read_bytes
    before = make()

    def changed(path: Path) -> bytes:
        return read(path) + b"#" * path.as_posix().endswith(f"kernels/{name}")

    monkeypatch.setattr(Path, "read_bytes", changed)
    assert make() != before


def test_a_user_without_a_home_computes_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", fail)
    path = _compile._folder.__wrapped__() / "kernel.o"
    _compile._write(path, b"code")
    assert _compile._read(path) is None


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_torch_s_default_type_is_no_concern_of_kernels(dtype: torch.dtype) -> None:
    defaults = f"torch.set_default_dtype({dtype})\n"
    code = STEP.replace("y = module(x)", defaults + "y = module(x)")
    run(code.replace("reference = HighwayStack", "torch.set_default_dtype(torch.float32)\nreference = HighwayStack"))


@pytest.mark.slow
def test_torch_s_default_device_is_no_concern_of_kernels() -> None:
    code = STEP.replace("y = module(x)", "torch.set_default_device('meta')\ny = module(x)")
    run(code.replace("reference = HighwayStack", "torch.set_default_device('cpu')\nreference = HighwayStack"))
