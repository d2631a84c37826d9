"""A plain convolution with its activation: when it is one operation, and that the result does not depend on it."""

from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

from verydeep import kernels
from verydeep.errors import UserError
from verydeep.models import Conv, ConvConfig, ConvNet, Highways, Pool
from verydeep.nn import Maxout, run_conv

CASES: dict[str, tuple[nn.Conv2d, nn.Module]] = {
    "relu": (nn.Conv2d(12, 20, 3, padding=1), nn.ReLU()),
    "maxout": (nn.Conv2d(12, 30, 3), Maxout(3)),
    "1x1": (nn.Conv2d(12, 20, 1), nn.ReLU()),
    "5x5": (nn.Conv2d(12, 20, 5, padding=2), nn.ReLU()),
    "stride": (nn.Conv2d(12, 20, 3, 2, 1), nn.ReLU()),
}
OTHERS: dict[str, tuple[nn.Module, nn.Module]] = {
    "groups": (nn.Conv2d(12, 20, 3, groups=2), nn.ReLU()),
    "dilation": (nn.Conv2d(12, 20, 3, dilation=2), nn.ReLU()),
    "reflection": (nn.Conv2d(12, 20, 3, padding=1, padding_mode="reflect"), nn.ReLU()),
    "same": (nn.Conv2d(12, 20, 3, padding="same"), nn.ReLU()),
    "oblong": (nn.Conv2d(12, 20, (1, 3)), nn.ReLU()),
    "no bias": (nn.Conv2d(12, 20, 3, bias=False), nn.ReLU()),
    "padded 1x1": (nn.Conv2d(12, 20, 1, padding=1), nn.ReLU()),
    "another activation": (nn.Conv2d(12, 20, 3), nn.Tanh()),
    "another class": (nn.Sequential(nn.Conv2d(12, 20, 3)), nn.ReLU()),
}


def calls(conv: nn.Module, activation: nn.Module, x: Tensor, backend: Any = "auto") -> tuple[int, Tensor]:
    """How many fused operators are called, and the result."""
    with patch.object(kernels, "conv_layer", wraps=kernels.conv_layer) as counted:
        y = run_conv(conv, activation, x, backend)
    return counted.call_count, y


@pytest.mark.parametrize("case", CASES)
def test_a_fused_convolution_equals_its_modules_with_its_gradients(case: str) -> None:
    conv, activation = CASES[case]
    x, results = torch.randn(3, 12, 9, 8), []
    for backend, count in (("fused", 1), ("reference", 0)):
        leaf = x.clone().requires_grad_()
        called, y = calls(conv, activation, leaf, backend)
        assert called == count
        results.append([y, *torch.autograd.grad(y.square().sum(), [leaf, *conv.parameters()])])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("case", OTHERS)
def test_what_has_no_kernel_is_called_as_it_is(case: str) -> None:
    conv, activation = OTHERS[case]
    x = torch.randn(100, 12, 9, 9)
    called, y = calls(conv, activation, x)
    assert called == 0
    torch.testing.assert_close(y, activation(conv(x)))


def test_kernels_run_by_themselves_where_they_are_faster() -> None:
    x = torch.randn(100, 12, 9, 9)
    assert calls(*CASES["relu"], x)[0] == 1
    assert calls(*CASES["stride"], x)[0] == 0
    assert calls(*CASES["relu"], x[:1])[0] == 0
    for channels, count in ((3, 1), (12, 0)):
        assert calls(nn.Conv2d(channels, 20, 8, padding=4), nn.ReLU(), x[:, :channels])[0] == count


def test_hooks_are_called() -> None:
    conv, activation = nn.Conv2d(12, 20, 3), nn.ReLU()
    for module in (conv, activation):
        seen: list[int] = []
        with module.register_forward_hook(lambda *_, seen=seen: seen.append(1)):
            assert calls(conv, activation, torch.randn(100, 12, 9, 9))[0] == 0
        assert seen == [1]


def test_fused_or_nothing_says_what_it_needs() -> None:
    conv, activation = CASES["relu"]
    with pytest.raises(UserError, match="needs float32"):
        run_conv(conv.double(), activation, torch.randn(3, 12, 9, 8).double(), "fused")
    conv.float()


def test_a_network_sets_the_backend_of_all_layers() -> None:
    model = ConvNet(ConvConfig((Conv(32), Highways((3, 1)), Pool(2), Conv(20, pieces=2), Pool())))
    x, counted = torch.randn(32, 3, 32, 32), []
    outputs = []
    backends: list[Any] = ["auto", "reference"]
    for backend in backends:
        model.backend = backend
        with patch.object(kernels, "conv_layer", wraps=kernels.conv_layer) as calls:
            outputs.append(model(x))
        counted.append(calls.call_count)
    assert counted == [4, 0]
    torch.testing.assert_close(*outputs, rtol=1e-3, atol=1e-3)
    with pytest.raises(UserError, match="unknown backend"):
        model.backend = "fast"  # type: ignore[assignment]


def test_a_network_keeps_its_channels_last() -> None:
    model = ConvNet(ConvConfig((Conv(32), Highways((3,)), Pool(2), Conv(20, stride=2), Conv(24), Pool())))
    formats: list[bool] = []
    for layer in model.layers:
        if isinstance(layer, nn.MaxPool2d):
            layer.register_forward_hook(
                lambda _, inputs, y: formats.extend(
                    t.is_contiguous(memory_format=torch.channels_last) for t in (*inputs, y)
                )
            )
    model(torch.randn(8, 3, 32, 32))
    assert formats == [True, True]
