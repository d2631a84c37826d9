"""The rounding errors of fused convolutions: `python benchmarks/conv_rounding.py`.

The root mean square error of the output, of dx and of the weights' gradient, against a convolution in float64, divided
by that of torch's convolution in float32. x and dy are normal, and weights are normal with He's variance. A 1x1
convolution is computed directly, 3x3 and 5x5 convolutions with Winograd's transforms.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from _result import write_result
from torch import Tensor

from verydeep.kernels.conv._conv_call import ConvOptions
from verydeep.kernels.conv._conv_op import conv_layer, conv_reference

OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "conv-rounding.json"
# receptive field, channels, side of the images
CASES = [(1, 64, 16), (3, 16, 32), (3, 32, 16), (3, 64, 16), (3, 128, 8), (5, 32, 16), (5, 96, 16)]
BATCH, SEEDS = 16, 5


def results(function: Callable[..., Tensor], values: list[Tensor], dy: Tensor, taps: int) -> list[Tensor]:
    """The output, dx, and the gradient of the weight."""
    leaves = [value.detach().requires_grad_() for value in values]
    y = function(*leaves, taps // 2)
    return [y.detach(), *torch.autograd.grad(y, leaves[:2], dy)]


def fused(x: Tensor, weight: Tensor, bias: Tensor, padding: int) -> Tensor:
    return conv_layer(x, [weight], [bias], ConvOptions(padding, 1, "linear", 1))


def direct(x: Tensor, weight: Tensor, bias: Tensor, padding: int) -> Tensor:
    return conv_reference(x, [weight], [bias], ConvOptions(padding, 1, "linear", 1))


def rms(values: list[Tensor], exact: list[Tensor]) -> list[float]:
    return [float((a.double() - b).square().mean().sqrt()) for a, b in zip(values, exact, strict=True)]


def measure(taps: int, channels: int, side: int) -> dict[str, Any]:
    ratios, relative = [], []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        weight = torch.randn(channels, channels, taps, taps) * (2 / (taps**2 * channels)) ** 0.5
        values = [torch.randn(BATCH, channels, side, side), weight, torch.zeros(channels)]
        dy = torch.randn_like(values[0])
        exact = results(direct, [value.double() for value in values], dy.double(), taps)
        ours, theirs = (rms(results(function, values, dy, taps), exact) for function in (fused, direct))
        ratios.append([a / b for a, b in zip(ours, theirs, strict=True)])
        relative.append([a / float(b.square().mean().sqrt()) for a, b in zip(ours, exact, strict=True)])
    names = "output", "dx", "d_weight"
    mean = torch.tensor(ratios).mean(0).tolist(), torch.tensor(relative).mean(0).tolist()
    return {
        "receptive_field": taps,
        "channels": channels,
        "side": side,
        "times_a_direct_convolution": {name: round(value, 1) for name, value in zip(names, mean[0], strict=True)},
        "relative_to_the_result": {name: float(f"{value:.1e}") for name, value in zip(names, mean[1], strict=True)},
    }


def main() -> None:
    rows = []
    for case in CASES:
        rows.append(measure(*case))
        print(json.dumps(rows[-1]), flush=True)
    what = "rms rounding error of fused convolutions, relative to torch's convolution in float32, mean over seeds"
    write_result(OUT, {"what": what, "batch": BATCH, "seeds": SEEDS, "layers": rows})


if __name__ == "__main__":
    main()
