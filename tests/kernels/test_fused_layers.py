"""When layers use the fused kernels, and that the results do not depend on it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

from verydeep import kernels
from verydeep.errors import UserError
from verydeep.nn import HighwayConv1d, HighwayConv2d, HighwayConv3d, HighwayLinear, HighwayStack

CASES: dict[str, tuple[Callable[..., nn.Module], tuple[int, ...]]] = {
    "linear": (lambda **k: HighwayLinear(9, **k), (5, 9)),
    "conv1d": (lambda **k: HighwayConv1d(5, **k), (3, 5, 9)),
    "conv2d": (lambda **k: HighwayConv2d(5, **k), (3, 5, 6, 7)),
    "conv2d, whole": (lambda **k: HighwayConv2d(16, **k), (3, 16, 6, 7)),
    "conv2d, 5x5": (lambda **k: HighwayConv2d(16, 5, **k), (2, 16, 6, 7)),
    "conv2d, wider": (lambda **k: HighwayConv2d(16, out_channels=24, stride=2, **k), (2, 16, 6, 7)),
    "conv2d, one image": (lambda **k: HighwayConv2d(16, **k), (16, 6, 7)),
    "conv3d": (lambda **k: HighwayConv3d(5, **k), (2, 5, 3, 4, 3)),
}
cases = pytest.mark.parametrize("case", CASES)


def calls(run: Callable[[], object]) -> int:
    """How many fused operators are called."""
    counted = []

    def count(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            counted.append(1)
            return function(*arguments)

        return call

    with (
        patch.object(kernels, "highway_gate", count(kernels.highway_gate)),
        patch.object(kernels, "conv_layer", count(kernels.conv_layer)),
    ):
        run()
    return len(counted)


@contextmanager
def of_any_size() -> Iterator[None]:
    """Kernels run however small a layer is."""
    with patch.multiple("verydeep.kernels.runtime._eligibility", _LEAST_FOR_GATE=0, _LEAST_FOR_CONV=0):
        yield


def twins(case: str, **options: Any) -> tuple[Any, Any, Tensor]:
    make, shape = CASES[case]
    fused, plain = make(backend="fused", **options), make(backend="reference", **options)
    plain.load_state_dict(fused.state_dict())
    return fused, plain, torch.randn(shape)


@cases
@pytest.mark.parametrize("carry", ["coupled", "independent"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_fused_layer_equals_the_reference_with_its_gradients(case: str, carry: str, activation: str) -> None:
    fused, plain, x = twins(case, carry=carry, activation=activation)
    assert calls(lambda: fused(x)) == 1
    assert calls(lambda: plain(x)) == 0
    found = []
    for layer in (fused, plain):
        leaf = x.clone().requires_grad_()
        y = layer(leaf)
        y.square().sum().backward()
        found.append([y, leaf.grad, *(p.grad for p in layer.parameters())])
    for value, expected in zip(*found, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-4)


@cases
def test_closed_and_trace_do_not_depend_on_the_backend(case: str) -> None:
    fused, plain, x = twins(case)
    assert torch.equal(fused(x, closed=True), plain(x, closed=True))
    torch.testing.assert_close(fused.trace(x).y, fused(x), rtol=1e-4, atol=1e-4)
    assert torch.equal(fused.trace(x).t, plain.trace(x).t)


def autocast(layer: nn.Module, x: Tensor) -> object:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return layer(x)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch itself, for forward-mode derivatives
@pytest.mark.parametrize("case", ["linear", "conv2d, whole"])
@pytest.mark.parametrize(
    "run",
    [
        lambda layer, x: torch.compile(layer, backend="eager")(x),
        lambda layer, x: torch.export.export(layer, (x,)),
        lambda layer, x: torch.func.vmap(lambda row: layer(row[None])[0])(x),
        lambda layer, x: torch.func.jvp(layer, (x,), (x,)),
        lambda layer, x: torch.func.grad(lambda x: layer(x).sum())(x),
        lambda layer, x: layer.double()(x.double()),
        lambda layer, x: layer.to("meta")(x.to("meta")),
        autocast,
    ],
    ids=["compile", "export", "vmap", "jvp", "grad", "float64", "meta", "autocast"],
)
def test_what_kernels_cannot_do_goes_to_the_reference(case: str, run: Callable[..., object]) -> None:
    make, shape = CASES[case]
    with of_any_size():
        assert calls(lambda: make()(torch.randn(shape))) == 1
        assert calls(lambda: run(make(), torch.randn(shape))) == 0


def test_other_activations_and_small_layers_go_to_the_reference() -> None:
    x = torch.randn(5, 9)
    assert calls(lambda: HighwayLinear(9)(x)) == 0
    assert calls(lambda: HighwayLinear(9)(torch.randn(5000, 9))) == 1
    assert calls(lambda: HighwayLinear(9, "elu")(torch.randn(5000, 9))) == 0
    assert calls(lambda: HighwayLinear(9, gate_activation="hardsigmoid")(torch.randn(5000, 9))) == 0


@pytest.mark.parametrize("options", [{"activation": "elu"}, {"gate_activation": "hardsigmoid"}])
def test_fused_or_nothing_says_what_it_needs(options: dict[str, str]) -> None:
    with pytest.raises(UserError, match="needs float32 tensors on the CPU, tanh or relu"):
        HighwayLinear(9, backend="fused", **options)(torch.randn(5, 9))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="needs float32"):
        HighwayLinear(9, backend="fused").double()(torch.randn(5, 9).double())
    with pytest.raises(UserError, match="unknown backend"):
        HighwayLinear(9, backend="fast")  # type: ignore[arg-type]


def test_concurrent_forwards_and_backwards_give_what_they_give_alone() -> None:
    layer = HighwayConv2d(16, backend="fused")
    images = [torch.randn(8, 16, 10, 10) for _ in range(8)]

    def work(x: Tensor) -> list[Tensor]:
        leaf = x.clone().requires_grad_()
        y = layer(leaf)
        return [y.detach(), *torch.autograd.grad(y.sum(), [leaf, *layer.parameters()])]

    torch.set_num_threads(2)
    try:
        alone = [work(x) for x in images]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(work, images))
    finally:
        torch.set_num_threads(1)
    assert all(
        torch.equal(a, b) for one, other in zip(alone, together, strict=True) for a, b in zip(one, other, strict=True)
    )


_STEP = """
import torch
from verydeep.nn import HighwayConv2d
torch.set_num_threads(2)
torch.manual_seed(0)
layer = HighwayConv2d(16, backend="fused")
def step():
    return layer(torch.ones(4, 16, 8, 8)).sum().item()
"""


def python(code: str, **environment: str) -> str:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_starts_threads_of_its_own() -> None:
    code = """
import os, warnings
import torch
from verydeep.kernels import highway_gate
warnings.simplefilter("ignore")  # of Python, about forks with threads
torch.set_num_threads(2)
z, x = torch.randn(8, 2, 2**14), torch.randn(8, 1, 2**14)
mine = highway_gate(z, x, 2, -2, "relu").numpy()
child = os.fork()
if child == 0:
    os._exit(int((highway_gate(z, x, 2, -2, "relu").numpy() != mine).any()))
print(os.waitpid(child, 0)[1])
"""
    assert python(code).strip() == "0"


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")  # no folder can be made below a file, whoever asks
    code = f"{_STEP}print(step())"
    assert python(code, XDG_CACHE_HOME=str(blocked)) == python(code, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert list((tmp_path / "cache").rglob("conv-tiles-3-1-highway_relu-2*"))


@pytest.mark.slow
def test_importing_the_layers_loads_no_compiler() -> None:
    assert (
        python("import sys, verydeep.nn; print('llvmlite' in sys.modules, 'numba' in sys.modules)") == "False False\n"
    )


def tanh(x: Tensor) -> Tensor:
    """Not torch's, though of that name."""
    return 1.7159 * torch.tanh(x * 2 / 3)


@cases
def test_an_activation_is_known_by_what_it_is_and_not_by_its_name(case: str) -> None:
    make, shape = CASES[case]
    layer, x = make(activation=tanh, backend="auto"), torch.randn(shape)
    with of_any_size():
        assert calls(lambda: layer(x)) == 0
        assert calls(lambda: make(activation=torch.nn.functional.relu)(x)) == 1
    stack, plain = (HighwayStack(8, 3, tanh, backend=backend) for backend in ("auto", "reference"))
    plain.load_state_dict(stack.state_dict())
    assert torch.equal(stack(torch.ones(2, 8)), plain(torch.ones(2, 8)))


@pytest.mark.parametrize("trained", ["block.bias", "gate.bias", "gate.weight"])
@cases
def test_some_parameters_alone_can_be_trained(case: str, trained: str) -> None:
    fused, plain, x = twins(case)
    for layer in (fused, plain):
        layer.requires_grad_(False)
        layer.get_parameter(trained).requires_grad_()
        layer(x).square().sum().backward()
    torch.testing.assert_close(
        fused.get_parameter(trained).grad, plain.get_parameter(trained).grad, rtol=1e-4, atol=1e-4
    )


@cases
def test_hooks_may_keep_what_is_saved_in_another_order(case: str) -> None:
    fused, plain, x = twins(case)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.contiguous().clone(), lambda t: t):
        fused(x).square().sum().backward()
    plain(x).square().sum().backward()
    for a, b in zip(fused.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)
