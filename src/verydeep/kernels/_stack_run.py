"""Running the fused stack: which samples go to which thread, what is kept, and the calls of the kernels."""

from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from verydeep.kernels._memory import borrow, work_space
from verydeep.kernels._pool import run_together

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBER = 4  # bytes
_CHUNK = 104  # samples whose activations of one layer fit the fastest cache, at the paper's widths


class Chunk(NamedTuple):
    """Some of the samples."""

    first: int
    samples: int
    vectors: int
    lanes: int  # of a vector
    start: int  # of what is kept of them, in numbers

    @property
    def lead(self) -> int:
        """Samples with padding."""
        return self.vectors * self.lanes


class Plan(NamedTuple):
    """How a batch is divided, and what is kept of it for the backward pass."""

    threads: tuple[tuple[Chunk, ...], ...]
    stride: int  # numbers a sample and layer
    kept: int  # numbers


def kept_by_sample(width: int, maps: int, layers: int, segment: int) -> tuple[int, int]:
    """Numbers a sample: of one layer (x, and z of highway layers, since a plain z is the next x), and kept in all."""
    layer = width if maps == 1 else width * (1 + maps)
    if segment == 0:
        return layer, 0
    return layer, layers * layer + width if segment == 1 else -(-layers // segment) * width


@lru_cache(maxsize=256)
def make_plan(batch: int, width: int, maps: int, layers: int, segment: int, threads: int) -> Plan:
    """Chunks of whole registers, the same number for every thread."""
    from verydeep.kernels._ir import LANES

    vectors = -(-batch // LANES)
    threads = max(1, min(threads, vectors))
    rounds = -(-vectors // (threads * (_CHUNK // LANES)))
    stride, samples = kept_by_sample(width, maps, layers, segment)
    chunks, done, count = [], 0, threads * rounds
    for i in range(count):
        upto = vectors * (i + 1) // count
        size = min(upto * LANES, batch) - done * LANES
        chunks.append(Chunk(done * LANES, size, upto - done, LANES, done * LANES * samples))
        done = upto
    groups = tuple(tuple(chunks[i : i + rounds]) for i in range(0, count, rounds))
    return Plan(groups, stride, vectors * LANES * samples)


@cache
def _kernels(maps: int, activation: str) -> "tuple[Callable[..., None], ...]":
    from verydeep.kernels._blocks import make_turn_all
    from verydeep.kernels._compile import compile_kernels
    from verydeep.kernels._stack import make_backward, make_forward

    kernels = [make_forward(maps, activation), make_backward(maps, activation), make_turn_all()]
    return tuple(compile_kernels(f"stack-{maps}-{activation}", kernels))


class Stack:
    """The layers of one call of the operator."""

    def __init__(self, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int) -> None:
        self.weight, self.bias = weight.detach().contiguous(), bias.detach().contiguous()
        self.layers, self.segment = layers, segment
        self.width, self.open = weight.shape[2], layers.shape[0]
        self.maps = weight.shape[1] // self.width
        self.run_forward, self.run_backward, self.turn = _kernels(self.maps, activation)

    def plan(self, batch: int, threads: int) -> Plan:
        """How to divide a batch."""
        return make_plan(batch, self.width, self.maps, self.open, self.segment, threads)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The output, and what is kept."""
        x = x.detach().contiguous()  # detached: the pool's threads know nothing of this one's grad mode
        plan = self.plan(x.shape[0], torch.get_num_threads())
        y, kept = torch.empty(x.shape), borrow(plan.kept)
        do = self._keep_all if self.segment == 1 else self._keep_some
        run_together([partial(_each, do, chunks, x, y, kept, stride=plan.stride) for chunks in plan.threads])
        return y, kept

    def backward(self, dy: Tensor, kept: Tensor, threads: int) -> tuple[Tensor, Tensor, Tensor]:
        """The derivatives by x, weight and bias."""
        dy, kept, plan = dy.detach().contiguous(), kept.detach(), self.plan(dy.shape[0], threads)
        dx = torch.empty(dy.shape)
        sums = [(self._like_weight(), torch.zeros_like(self.bias)) for _ in plan.threads]
        jobs = zip(plan.threads, sums, strict=True)
        run_together([partial(self._back, chunks, dy, dx, kept, plan.stride, *sums) for chunks, sums in jobs])
        for d_weight, d_bias in sums[1:]:  # always in the same order: the same bits
            sums[0][0].add_(d_weight)
            sums[0][1].add_(d_bias)
        return dx, *sums[0]

    def unpack(self, kept: Tensor, batch: int) -> list[Tensor]:
        """What highway layers did, from what was kept: x, H, T, an independent C, and y, `(layer, batch, block)`."""
        parts = []
        for chunk in (chunk for chunks in self.plan(batch, torch.get_num_threads()).threads for chunk in chunks):
            size = self.open * (1 + self.maps) * self.width * chunk.lead
            flat = kept[chunk.start : chunk.start + size + self.width * chunk.lead].view(-1, self.width, chunk.lead)
            parts.append(flat[..., : chunk.samples].transpose(1, 2))  # (layer * part, sample, block)
        every = torch.cat(parts, 1)
        layers = every[:-1].unflatten(0, (self.open, 1 + self.maps)).unbind(1)
        outputs = torch.cat([layers[0][1:], every[-1:]])
        return [*layers, outputs]

    def states(self, kept: Tensor, batch: int) -> Tensor:
        """The inputs of all layers and the output of the last, from what was kept: `(layer + 1, batch, block)`."""
        plan = self.plan(batch, torch.get_num_threads())
        result = torch.empty(self.open + 1, batch, self.width)
        for chunk in (chunk for chunks in plan.threads for chunk in chunks):
            rows, size = slice(chunk.first, chunk.first + chunk.samples), self.open * plan.stride
            flat = kept[chunk.start : chunk.start + (size + self.width) * chunk.lead].view(-1, chunk.lead)
            layers = flat[:size].unflatten(0, (self.open, plan.stride))
            result[:-1, rows] = layers[:, : self.width, : chunk.samples].transpose(1, 2)
            result[-1, rows] = flat[size:, : chunk.samples].T
        return result

    def _like_weight(self) -> Tensor:
        d_weight = borrow(self.weight.numel()).view_as(self.weight)
        return d_weight if self.open == len(self.weight) else d_weight.zero_()  # closed layers have no gradient

    def _keep_all(self, chunk: Chunk, x: Tensor, y: Tensor, kept: Tensor, stride: int) -> None:
        first = _Matrix(kept, chunk.start, self.width, chunk)
        self._put(x, first, chunk)
        self._through(first.address, 0, self.open, stride, chunk)
        self._get(_Matrix(kept, chunk.start + self.open * stride * chunk.lead, self.width, chunk), y, chunk)

    def _keep_some(self, chunk: Chunk, x: Tensor, y: Tensor, kept: Tensor, _stride: int) -> None:
        """Keep the input of every segment, or nothing."""
        here = _Matrix(work_space((1 + self.maps) * self.width * chunk.lead), 0, self.width, chunk)
        self._put(x, here, chunk)
        step = self.segment or self.open
        for number, layer in enumerate(range(0, self.open, step)):
            if self.segment:
                there = _Matrix(kept, chunk.start + number * self.width * chunk.lead, self.width, chunk)
                there.whole[:] = here.whole
            self._through(here.address, layer, min(step, self.open - layer), 0, chunk)
        self._get(here, y, chunk)

    def _back(
        self,
        chunks: tuple[Chunk, ...],
        dy: Tensor,
        dx: Tensor,
        kept: Tensor,
        stride: int,
        d_weight: Tensor,
        d_bias: Tensor,
    ) -> None:
        """One thread's chunks."""
        for number, chunk in enumerate(chunks):
            room, memory = self._rooms(chunk, stride)
            d = _Matrix(room, 0, self.width, chunk)
            self._put(dy, d, chunk)
            step = self.open if self.segment == 1 else self.segment
            for layer in reversed(range(0, self.open, step)):
                count = min(step, self.open - layer)
                if self.segment == 1:
                    x = _Matrix(kept, chunk.start, self.width, chunk)
                else:
                    x = _Matrix(memory, 0, self.width, chunk)
                    place = chunk.start + layer // step * self.width * chunk.lead
                    x.whole[:] = _Matrix(kept, place, self.width, chunk).whole
                    self._through(x.address, layer, count, stride, chunk)
                self.run_backward(
                    self.weight.data_ptr(),
                    d_weight.data_ptr(),
                    d_bias.data_ptr(),
                    self.layers.data_ptr() + layer * 8,
                    count,
                    x.address,
                    stride * chunk.lead * _NUMBER,
                    d.address,
                    self.width,
                    chunk.vectors,
                    chunk.samples,
                    int(number > 0),
                )
            self._get(d, dx, chunk)

    def _rooms(self, chunk: Chunk, stride: int) -> tuple[Tensor, Tensor]:
        """Room for derivatives, and for the layers of a segment."""
        lead, wide = chunk.lead, -(-self.width // chunk.lanes) * chunk.lanes
        matrices = (1 + self.maps) * self.width * lead + lead * wide + self.maps * self.width * wide
        layers = 0 if self.segment == 1 else (self.segment + 1) * stride * lead + self.width * lead
        room = work_space(matrices + layers)
        return room[:matrices], room[matrices:]

    def _put(self, x: Tensor, matrix: "_Matrix", chunk: Chunk) -> None:
        """Copy samples, (sample, block), into a matrix; its padding is zeros."""
        rows = x.data_ptr() + chunk.first * self.width * _NUMBER
        self.turn(rows, self.width * _NUMBER, matrix.address, chunk.lead * _NUMBER, chunk.samples, self.width)
        if chunk.samples < chunk.lead:
            matrix.whole[:, chunk.samples :] = 0

    def _get(self, matrix: "_Matrix", y: Tensor, chunk: Chunk) -> None:
        """Copy samples out of a matrix."""
        rows = y.data_ptr() + chunk.first * self.width * _NUMBER
        self.turn(matrix.address, chunk.lead * _NUMBER, rows, self.width * _NUMBER, self.width, chunk.samples)

    def _through(self, x: int, layer: int, count: int, stride: int, chunk: Chunk) -> None:
        self.run_forward(
            self.weight.data_ptr(),
            self.bias.data_ptr(),
            self.layers.data_ptr() + layer * 8,
            count,
            x,
            stride * chunk.lead * _NUMBER,
            self.width,
            chunk.vectors,
        )


class _Matrix:
    """A matrix (block, sample) in memory."""

    def __init__(self, memory: Tensor, start: int, width: int, chunk: Chunk) -> None:
        self.address = memory.data_ptr() + start * _NUMBER
        self.whole = memory.numpy()[start : start + width * chunk.lead].reshape(width, chunk.lead)


def _each(
    do: "Callable[..., None]", chunks: tuple[Chunk, ...], x: Tensor, y: Tensor, kept: Tensor, stride: int
) -> None:
    for chunk in chunks:
        do(chunk, x, y, kept, stride)
