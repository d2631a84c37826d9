"""Running the fused stack: the kernels' calls for a batch, forward and backward."""

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from verydeep.kernels._memory import borrow, work_space
from verydeep.kernels._pool import Call, run_together
from verydeep.kernels._stack_plan import Chunk, Plan, make_plan

if TYPE_CHECKING:
    from verydeep.kernels._compile import Function

_NUMBER = 4  # bytes


class _Kernels(NamedTuple):
    forward: "Function"
    backward: "Function"
    turn: "Function"
    clear: "Function"
    copy: "Function"
    add: "Function"


@cache
def _kernels(maps: int, activation: str) -> _Kernels:
    from verydeep.kernels._blocks import make_clear, make_pass, make_turn_all
    from verydeep.kernels._compile import compile_kernels
    from verydeep.kernels._stack import make_backward, make_forward

    copy, add = make_pass("copy", 1, 0, 1, lambda a: (a,)), make_pass("add", 2, 0, 1, lambda a, b: (a + b,))
    kernels = [
        make_forward(maps, activation),
        make_backward(maps, activation),
        make_turn_all(),
        make_clear(),
        copy,
        add,
    ]
    return _Kernels(*compile_kernels(f"stack-{maps}-{activation}", kernels))


class Stack:
    """The layers of one call of the operator."""

    def __init__(self, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int) -> None:
        self.weight, self.bias = weight.detach().contiguous(), bias.detach().contiguous()
        self.layers, self.segment = layers, segment
        self.width, self.open = weight.shape[2], layers.shape[0]
        self.maps = weight.shape[1] // self.width
        self.kernels = _kernels(self.maps, activation)

    def plan(self, batch: int, threads: int) -> Plan:
        """How to divide a batch."""
        return make_plan(batch, self.width, self.maps, self.open, self.segment, threads)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The output, and what is kept."""
        x, plan = x.detach().contiguous(), self.plan(x.shape[0], torch.get_num_threads())
        y, kept = torch.empty(x.shape), borrow(plan.kept)
        make = self._keep_all if self.segment == 1 else self._keep_some
        size = 0 if self.segment == 1 else (1 + self.maps) * self.width * plan.longest
        rooms = work_space(size * len(plan.threads)).data_ptr()
        run_together(
            [
                [call for chunk in chunks for call in make(chunk, x, y, kept, rooms + i * size * _NUMBER, plan.stride)]
                for i, chunks in enumerate(plan.threads)
            ]
        )
        return y, kept

    def backward(self, dy: Tensor, kept: Tensor, threads: int) -> tuple[Tensor, Tensor, Tensor]:
        """The derivatives by x, weight and bias."""
        dy, kept, plan = dy.detach().contiguous(), kept.detach(), self.plan(dy.shape[0], threads)
        dx = torch.empty(dy.shape)
        sums = [(self._like_weight(), torch.zeros(self.bias.shape)) for _ in plan.threads]
        size = self._room(plan)
        rooms = work_space(size * len(plan.threads)).data_ptr()
        run_together(
            [
                self._back(chunks, dy, dx, kept, rooms + i * size * _NUMBER, plan.stride, *sums[i])
                for i, chunks in enumerate(plan.threads)
            ]
        )
        self._add_up(sums)
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

    def _add_up(self, sums: list[tuple[Tensor, Tensor]]) -> None:
        """Add what the threads have found to the first one's, always in the same order: the same bits."""
        if len(sums) == 1:
            return
        registers = -(-self.weight.numel() // 16)  # of the largest kind; the memory has room behind its end
        bounds = [registers * i // len(sums) for i in range(len(sums) + 1)]
        addresses = [d_weight.data_ptr() for d_weight, _ in sums]
        jobs = []
        for first, last in pairwise(bounds):
            to, *others = (address + first * 64 for address in addresses)
            jobs.append([self._row(self.kernels.add, (last - first) * 16, to, other, to) for other in others])
        run_together(jobs)
        for _, d_bias in sums[1:]:
            sums[0][1].add_(d_bias)

    def _keep_all(self, chunk: Chunk, x: Tensor, y: Tensor, kept: Tensor, _room: int, stride: int) -> list[Call]:
        first = kept.data_ptr() + chunk.start * _NUMBER
        last = first + self.open * stride * chunk.lead * _NUMBER
        return [
            *self._put(x, first, chunk),
            self._through(first, 0, self.open, stride, chunk),
            self._get(last, y, chunk),
        ]

    def _keep_some(self, chunk: Chunk, x: Tensor, y: Tensor, kept: Tensor, room: int, _stride: int) -> list[Call]:
        """Keep the input of every segment, or nothing."""
        calls = self._put(x, room, chunk)
        step, size = self.segment or self.open, self.width * chunk.lead
        for number, layer in enumerate(range(0, self.open, step)):
            if self.segment:
                there = kept.data_ptr() + (chunk.start + number * size) * _NUMBER
                calls.append(self._row(self.kernels.copy, size, room, there))
            calls.append(self._through(room, layer, min(step, self.open - layer), 0, chunk))
        return [*calls, self._get(room, y, chunk)]

    def _back(
        self,
        chunks: tuple[Chunk, ...],
        dy: Tensor,
        dx: Tensor,
        kept: Tensor,
        room: int,
        stride: int,
        d_weight: Tensor,
        d_bias: Tensor,
    ) -> list[Call]:
        """One thread's chunks. The room begins with d; layers that are computed again come behind all derivatives."""
        calls: list[Call] = []
        for number, chunk in enumerate(chunks):
            calls += self._put(dy, room, chunk)
            step, size = self.open if self.segment == 1 else self.segment, self.width * chunk.lead
            for layer in reversed(range(0, self.open, step)):
                count = min(step, self.open - layer)
                x = kept.data_ptr() + (chunk.start + layer // step * size) * _NUMBER
                if self.segment > 1:
                    again = room + self._derivatives(chunk.lead, chunk.lanes) * _NUMBER
                    calls += [
                        self._row(self.kernels.copy, size, x, again),
                        self._through(again, layer, count, stride, chunk),
                    ]
                    x = again
                arguments = (
                    *(self.weight.data_ptr(), d_weight.data_ptr(), d_bias.data_ptr()),
                    *(self.layers.data_ptr() + layer * 8, count, x, stride * chunk.lead * _NUMBER, room),
                    *(self.width, chunk.vectors, chunk.samples, int(number > 0)),
                )
                calls.append((self.kernels.backward, arguments))
            calls.append(self._get(room, dx, chunk))
        return calls

    def _room(self, plan: Plan) -> int:
        """How many numbers a thread's backward pass works in."""
        lanes = plan.threads[0][0].lanes
        again = 0 if self.segment == 1 else ((self.segment + 1) * plan.stride + self.width) * plan.longest
        return self._derivatives(plan.longest, lanes) + again

    def _derivatives(self, lead: int, lanes: int) -> int:
        """D and dz, x as rows of samples, and padded rows of weights' derivatives."""
        wide = -(-self.width // lanes) * lanes
        return (1 + self.maps) * self.width * lead + lead * wide + self.maps * self.width * wide

    def _put(self, x: Tensor, matrix: int, chunk: Chunk) -> list[Call]:
        """Copy samples, (sample, block), into a matrix; its padding is zeros."""
        rows = x.data_ptr() + chunk.first * self.width * _NUMBER
        lead, width = chunk.lead * _NUMBER, self.width * _NUMBER
        clear = (matrix + chunk.samples * _NUMBER, lead, self.width, chunk.lead - chunk.samples)
        return [
            (self.kernels.turn, (rows, width, matrix, lead, chunk.samples, self.width)),
            (self.kernels.clear, clear),
        ]

    def _get(self, matrix: int, y: Tensor, chunk: Chunk) -> Call:
        """Copy samples out of a matrix."""
        rows = y.data_ptr() + chunk.first * self.width * _NUMBER
        lead, width = chunk.lead * _NUMBER, self.width * _NUMBER
        return self.kernels.turn, (matrix, lead, rows, width, self.width, chunk.samples)

    def _row(self, kernel: "Function", numbers: int, *addresses: int) -> Call:
        """A formula over so many numbers, whole registers of them."""
        from verydeep.kernels._ir import LANES

        return kernel, (1, numbers // LANES, *addresses)

    def _through(self, x: int, layer: int, count: int, stride: int, chunk: Chunk) -> Call:
        layers = self.layers.data_ptr() + layer * 8
        step = stride * chunk.lead * _NUMBER
        arguments = (self.weight.data_ptr(), self.bias.data_ptr(), layers, count, x, step, self.width, chunk.vectors)
        return self.kernels.forward, arguments
