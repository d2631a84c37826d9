"""Members of the family of fused convolutions, and inputs for them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

from verydeep.kernels import ConvOptions
from verydeep.kernels.conv._conv_op import conv_layer, conv_reference


class Member(NamedTuple):
    """A receptive field, and what follows the convolution."""

    taps: int
    padding: int
    stride: int
    kind: str
    affine_maps: int

    @property
    def options(self) -> ConvOptions:
        return ConvOptions(self.padding, self.stride, self.kind, self.affine_maps)


FIELDS = [(3, 1, 1), (3, 0, 1), (1, 0, 1), (5, 2, 1), (5, 0, 1), (3, 1, 2), (8, 4, 1)]
PLAIN = [Member(*field, "relu", 1) for field in FIELDS]
MAXOUT = [Member(3, 1, 1, "maxout", 2), Member(1, 0, 1, "maxout", 3)]
LINEAR = [Member(3, 1, 1, "linear", 1), Member(1, 0, 1, "linear", 1)]
HIGHWAY = [
    Member(taps, taps // 2, 1, f"highway_{activation}", maps)
    for taps in (1, 3, 5)
    for activation, maps in (("relu", 2), ("tanh", 3))
]
MEMBERS = [*PLAIN, *MAXOUT, *LINEAR, *HIGHWAY]


class Case(NamedTuple):
    """A member with the sizes of its tensors."""

    member: Member
    batch: int
    channels: int
    outs: int  # feature maps of y
    height: int
    width: int


@st.composite
def cases(draw: st.DrawFn, members: Sequence[Member] = MEMBERS, channels: int = 130, side: int = 11) -> Case:
    member = draw(st.sampled_from(members))
    least = max(1, member.taps - 2 * member.padding)
    height, width = draw(st.integers(least, max(least, side))), draw(st.integers(least, max(least, side)))
    ins = draw(st.integers(1, channels))
    outs = ins if member.kind.startswith("highway") else draw(st.integers(1, min(50, channels)))
    return Case(member, draw(st.integers(1, 4)), ins, outs, height, width)


def inputs(case: Case, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """x, weight and bias."""
    generator = torch.Generator().manual_seed(seed)
    member, outs = case.member, case.member.affine_maps * case.outs
    weight = torch.randn(outs, case.channels, member.taps, member.taps, generator=generator)
    x = torch.randn(case.batch, case.channels, case.height, case.width, generator=generator)
    return x, weight / (case.channels * member.taps**2) ** 0.5, torch.randn(outs, generator=generator)


def fused(member: Member, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return conv_layer(x, *split(member, weight, bias), member.options)


def reference(member: Member, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return conv_reference(x, [weight], [bias], member.options)


def split(member: Member, weight: Tensor, bias: Tensor) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """The weights and biases of each affine map of a highway layer; other layers have one of each."""
    maps = member.affine_maps if member.kind.startswith("highway") else 1
    return weight.chunk(maps), bias.chunk(maps)


def with_gradients(function: Any, member: Member, values: Sequence[Tensor], dy: Tensor | None) -> list[Tensor]:
    """y and the gradients of all values; dy is random, but the same at every call, unless it is given."""
    leaves = [value.detach().requires_grad_() for value in values]
    y = function(member, *leaves)
    if dy is None:
        dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    return [y.detach(), *torch.autograd.grad(y, leaves, dy.to(y.dtype))]


def errors(found: Sequence[Tensor], expected: Sequence[Tensor]) -> list[float]:
    """Relative to the norm: slopes of relu and maxout jump where rounding decides, so single numbers may differ."""
    pairs = zip(found, expected, strict=True)
    return [float((a.double() - b).norm() / b.norm().clamp_min(1e-12)) for a, b in pairs]
