"""One call of the fused stack: the kernel calls for a batch, forward and backward."""

from functools import cache, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from verydeep.kernels.dense._ends_call import EndsCall
from verydeep.kernels.dense._stack_plan import Chunk, Plan, make_plan
from verydeep.kernels.runtime._buffers import borrow, work_space
from verydeep.kernels.runtime._threads import Call, run_together

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes
_REGISTER = 16  # numbers, of the largest kind


class _Gradients(NamedTuple):
    """One thread's gradients of the stack's weight and bias, and of those of the layers around it."""

    block: Tensor  # all of them in one piece of memory
    parts: list[Tensor]


class _StackKernels(NamedTuple):
    forward: "Function"
    backward: "Function"
    turn: "Function"
    clear: "Function"
    copy: "Function"
    add: "Function"


@cache
def _kernels(maps: int, activation: str) -> _StackKernels:
    from verydeep.kernels.dense._stack_loops import make_backward, make_forward
    from verydeep.kernels.ir._passes import make_clear, make_pass
    from verydeep.kernels.ir._turn import make_turn_all
    from verydeep.kernels.runtime._compile import compile_kernels

    copy, add = make_pass("copy", 1, 0, 1, lambda a: (a,)), make_pass("add", 2, 0, 1, lambda a, b: (a + b,))
    kernels = [
        make_forward(maps, activation),
        make_backward(maps, activation),
        make_turn_all(),
        make_clear(),
        copy,
        add,
    ]
    return _StackKernels(*compile_kernels(f"stack-{maps}-{activation}", kernels))


class StackCall:
    """The layers of one call of the operator, alone or between an input layer and a classifier.

    With these two, `segment` is 0 or 1.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor, layers: Tensor, activation: str, segment: int, ends: EndsCall | None = None
    ) -> None:
        self.weight, self.bias = weight.contiguous(), bias.contiguous()
        self.layers, self.segment, self.ends = layers, segment, ends
        self.width, self.open = weight.shape[2], layers.shape[0]
        self.maps = weight.shape[1] // self.width
        self.kernels = _kernels(self.maps, activation)

    def plan(self, batch: int, threads: int) -> Plan:
        """How a batch is divided among threads."""
        return make_plan(batch, self.width, self.maps, self.open, self.segment, threads)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The output, and what is kept for the backward pass."""
        x, plan = x.contiguous(), self.plan(x.shape[0], torch.get_num_threads())
        y, kept = x.new_empty(x.shape[0], self.width if self.ends is None else self.ends.classes), borrow(plan.kept)
        make = self._keep_all if self.segment == 1 else self._keep_some
        size = 0 if self.segment == 1 else (1 + self.maps) * self.width * plan.longest
        size += 0 if self.ends is None else self.ends.room(plan.longest)
        rooms = work_space(size * len(plan.threads)).data_ptr()
        run_together(
            [
                [call for chunk in chunks for call in make(chunk, x, y, kept, rooms + i * size * _NUMBER, plan.stride)]
                for i, chunks in enumerate(plan.threads)
            ]
        )
        return y, kept

    def backward(self, dy: Tensor, kept: Tensor, threads: int, x: Tensor | None = None) -> tuple[Tensor, ...]:
        """The gradients of x, weight and bias.

        With an input layer, whose input is x: those of weight and bias of the stack, the input layer, the classifier.
        """
        dy, plan = dy.contiguous(), self.plan(dy.shape[0], threads)
        below = dy.new_empty(dy.shape) if x is None else x.contiguous()  # dx, or the input of the input layer
        found = [self._gradients() for _ in plan.threads]
        size = self._room(plan)
        rooms = work_space(size * len(plan.threads)).data_ptr()
        run_together(
            [
                self._back(chunks, dy, below, kept, rooms + i * size * _NUMBER, plan.stride, found[i].parts)
                for i, chunks in enumerate(plan.threads)
            ]
        )
        _add_up([gradients.block for gradients in found], self.kernels.add)
        parts = found[0].parts
        return tuple(parts) if self.ends is not None else (below, *parts)

    def unpack(self, kept: Tensor, batch: int) -> list[Tensor]:
        """x, H, T, an independent C, and y of highway layers, from what was kept: each `(layer, batch, block)`."""
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
        result = kept.new_empty(self.open + 1, batch, self.width)
        for chunk in (chunk for chunks in plan.threads for chunk in chunks):
            rows, size = slice(chunk.first, chunk.first + chunk.samples), self.open * plan.stride
            flat = kept[chunk.start : chunk.start + (size + self.width) * chunk.lead].view(-1, chunk.lead)
            layers = flat[:size].unflatten(0, (self.open, plan.stride))
            result[:-1, rows] = layers[:, : self.width, : chunk.samples].transpose(1, 2)
            result[-1, rows] = flat[size:, : chunk.samples].T
        return result

    def _gradients(self) -> _Gradients:
        """Memory for the gradients of one thread; those of weights are written, those of biases accumulated."""
        like = (self.weight, self.bias, *(() if self.ends is None else (*self.ends.first, *self.ends.last)))
        places, biases, numbers = _layout(*(one.shape for one in like))
        block = borrow(numbers)
        block[biases:].zero_()
        parts = [block.as_strided(one.shape, one.stride(), place) for one, place in zip(like, places, strict=True)]
        if self.open < len(self.weight):
            parts[0].zero_()  # closed layers have no gradient
        return _Gradients(block, parts)

    def _keep_all(self, chunk: Chunk, x: Tensor, y: Tensor, kept: Tensor, room: int, stride: int) -> list[Call]:
        """Keep the activations of every layer."""
        first = kept.data_ptr() + chunk.start * _NUMBER
        last = first + self.open * stride * chunk.lead * _NUMBER
        return [
            *self._enter(x, first, chunk, room),
            self._through(first, 0, self.open, stride, chunk),
            self._exit(last, y, chunk, room),
        ]

    def _keep_some(self, chunk: Chunk, x: Tensor, y: Tensor, kept: Tensor, room: int, _stride: int) -> list[Call]:
        """Keep the input of every segment, or nothing."""
        step, size = self.segment or self.open, self.width * chunk.lead
        calls = self._enter(x, room, chunk, room + (1 + self.maps) * size * _NUMBER)
        for number, layer in enumerate(range(0, self.open, step)):
            if self.segment:
                there = kept.data_ptr() + (chunk.start + number * size) * _NUMBER
                calls.append(self._row(self.kernels.copy, size, room, there))
            calls.append(self._through(room, layer, min(step, self.open - layer), 0, chunk))
        return [*calls, self._exit(room, y, chunk, room + (1 + self.maps) * size * _NUMBER)]

    def _back(
        self,
        chunks: tuple[Chunk, ...],
        dy: Tensor,
        below: Tensor,
        kept: Tensor,
        room: int,
        stride: int,
        parts: list[Tensor],
    ) -> list[Call]:
        """Back through one thread's chunks; the scratch memory has d first, and recomputed layers last."""
        calls: list[Call] = []
        for number, chunk in enumerate(chunks):
            if self.ends is None:
                calls += self._put(dy, room, chunk)
            else:
                last, free = chunk.start + self.open * stride * chunk.lead, room + self.width * chunk.lead * _NUMBER
                y = kept.data_ptr() + last * _NUMBER
                calls.append(self.ends.d_classify(y, dy, room, free, chunk, (parts[4], parts[5]), number > 0))
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
                    *(self.weight.data_ptr(), parts[0].data_ptr(), parts[1].data_ptr()),
                    *(self.layers.data_ptr() + layer * 8, count, x, stride * chunk.lead * _NUMBER, room),
                    *(self.width, chunk.vectors, chunk.samples, int(number > 0)),
                )
                calls.append((self.kernels.backward, arguments))
            if self.ends is None:
                calls.append(self._get(room, below, chunk))
            else:
                x = kept.data_ptr() + chunk.start * _NUMBER
                calls.append(self.ends.leave(below, x, room, chunk, (parts[2], parts[3]), number > 0))
        return calls

    def _room(self, plan: Plan) -> int:
        """The scratch size of one thread's backward pass, in numbers."""
        lanes = plan.threads[0][0].lanes
        again = 0 if self.segment == 1 else ((self.segment + 1) * plan.stride + self.width) * plan.longest
        ends = 0 if self.ends is None else self.width * plan.longest + self.ends.d_room(plan.longest, lanes)
        return max(self._derivatives(plan.longest, lanes) + again, ends)

    def _derivatives(self, lead: int, lanes: int) -> int:
        """The size of d, dz, and x as rows of samples."""
        wide = -(-self.width // lanes) * lanes
        return (1 + self.maps) * self.width * lead + lead * wide

    def _enter(self, x: Tensor, matrix: int, chunk: Chunk, room: int) -> list[Call]:
        """Fill the memory of the first layer of the stack."""
        return self._put(x, matrix, chunk) if self.ends is None else [self.ends.enter(x, matrix, chunk, room)]

    def _exit(self, matrix: int, y: Tensor, chunk: Chunk, room: int) -> Call:
        """Copy the output of the last layer, or classify it."""
        return self._get(matrix, y, chunk) if self.ends is None else self.ends.classify(matrix, y, chunk, room)

    def _put(self, x: Tensor, matrix: int, chunk: Chunk) -> list[Call]:
        """Copy samples, (sample, block), into a matrix padded with zeros."""
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
        """A formula over this many numbers, in whole registers."""
        return kernel, (1, numbers // _lanes(), *addresses)

    def _through(self, x: int, layer: int, count: int, stride: int, chunk: Chunk) -> Call:
        """Forward through `count` layers from `layer` on."""
        layers = self.layers.data_ptr() + layer * 8
        step = stride * chunk.lead * _NUMBER
        arguments = (self.weight.data_ptr(), self.bias.data_ptr(), layers, count, x, step, self.width, chunk.vectors)
        return self.kernels.forward, arguments


def _add_up(blocks: list[Tensor], add: "Function") -> None:
    """Add the gradients of all threads to those of the first, always in the same order: the same bits."""
    if len(blocks) == 1:
        return
    registers = blocks[0].numel() // _REGISTER
    bounds = [registers * i // len(blocks) for i in range(len(blocks) + 1)]
    jobs: list[list[Call]] = []
    for first, last in pairwise(bounds):
        to, *others = (block.data_ptr() + first * _REGISTER * _NUMBER for block in blocks)
        jobs.append([(add, (1, (last - first) * _REGISTER // _lanes(), to, other, to)) for other in others])
    run_together(jobs)


@lru_cache(maxsize=256)
def _layout(*shapes: torch.Size) -> tuple[list[int], int, int]:
    """The offsets of the gradients of weight, bias, weight, bias ... in a block, that of all biases, and its size."""
    order = [*range(0, len(shapes), 2), *range(1, len(shapes), 2)]  # weights, then biases, which are cleared together
    ends = list(accumulate(-(-shapes[i].numel() // _REGISTER) * _REGISTER for i in order))
    begins = dict(zip(order, [0, *ends], strict=False))
    return [begins[i] for i in range(len(shapes))], begins[1], ends[-1]


def _lanes() -> int:
    from verydeep.kernels.ir._ir import LANES

    return LANES
