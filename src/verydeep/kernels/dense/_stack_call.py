"""One call of the fused stack: the kernel calls for a batch, forward and backward."""

from functools import cache, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from verydeep.kernels.dense._outer_layers_call import OuterLayersCall
from verydeep.kernels.dense._stack_plan import Chunk, Plan, make_plan, parts_of_layer
from verydeep.kernels.runtime._buffers import acquire_buffer, thread_scratch
from verydeep.kernels.runtime._threads import Call, run_together

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes
_REGISTER = 16  # numbers, of the largest kind


class StackGradients(NamedTuple):
    """One thread's gradients of the stack's weight and bias, and of those of the layers around it."""

    block: Tensor  # all of them in one piece of memory
    parts: list[Tensor]
    first_bias: int  # the number in the block from which on it holds those of biases

    @property
    def biases(self) -> int:
        """The address of the gradients of biases."""
        return self.block.data_ptr() + self.first_bias * _NUMBER

    @property
    def bias_registers(self) -> int:
        """How many registers the gradients of biases fill."""
        return (self.block.numel() - self.first_bias) // _lanes()


class _StackKernels(NamedTuple):
    forward: "Function"
    backward: "Function"
    transpose: "Function"
    zero_columns: "Function"
    copy: "Function"
    add: "Function"


@cache
def _kernels(affine_maps: int, formula: str, bfloat16: bool) -> _StackKernels:
    from verydeep.kernels.dense._stack_loops import make_backward, make_forward
    from verydeep.kernels.ir._elementwise import add, copy
    from verydeep.kernels.ir._fill import zero_columns
    from verydeep.kernels.ir._transpose import transpose
    from verydeep.kernels.runtime._compile import compile_kernels

    forward, backward = make_forward(affine_maps, formula, bfloat16), make_backward(affine_maps, formula, bfloat16)
    kernels = [forward, backward, transpose, zero_columns, copy, add]
    return _StackKernels(*compile_kernels(f"stack-{affine_maps}-{formula}" + "-bfloat16" * bfloat16, kernels))


class StackCall:
    """The layers of one call of the operator, alone or between an input layer and a classifier.

    With these two, `segment` is 0 or 1. With `bfloat16`, the products of the stack round their factors to bfloat16.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor,
        layers: Tensor,
        formula: str,
        segment: int,
        outer: OuterLayersCall | None = None,
        bfloat16: bool = False,
    ) -> None:
        self.weight, self.bias = weight.contiguous(), bias.contiguous()
        self.layers, self.segment, self.outer = layers, segment, outer
        self.width, self.open = weight.shape[2], layers.shape[0]
        self.affine_maps = weight.shape[1] // self.width
        self.parts = parts_of_layer(self.affine_maps, formula)
        self.kernels = _kernels(self.affine_maps, formula, bfloat16)
        self.bfloat16 = bfloat16

    def plan(self, batch: int, threads: int) -> Plan:
        """How a batch is divided among threads."""
        return make_plan(batch, self.width, self.parts, self.open, self.segment, threads)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The output, and what is kept for the backward pass."""
        x, plan = x.contiguous(), self.plan(x.shape[0], torch.get_num_threads())
        y = x.new_empty(x.shape[0], self.width if self.outer is None else self.outer.classes)
        kept = acquire_buffer(plan.kept)
        make = self._keep_all if self.segment == 1 else self._keep_some
        size = 0 if self.segment == 1 else (1 + self.affine_maps) * self.width * plan.longest
        outer = 0 if self.outer is None else self.outer.scratch_size(plan.longest)
        size += max(outer, self._forward_scratch_size(plan.longest))
        scratches = self._scratches(size, plan)
        run_together(
            [
                [call for chunk in chunks for call in make(chunk, x, y, kept, scratch, plan.stride)]
                for scratch, chunks in zip(scratches, plan.threads, strict=True)
            ]
        )
        return y, kept

    def backward(self, dy: Tensor, kept: Tensor, threads: int, x: Tensor | None = None) -> tuple[Tensor, ...]:
        """The gradients of x, weight and bias.

        With an input layer, whose input is x: those of weight and bias of the stack, the input layer, the classifier.
        """
        dy, plan = dy.contiguous(), self.plan(dy.shape[0], threads)
        below = dy.new_empty(dy.shape) if x is None else x.contiguous()  # dx, or the input of the input layer
        found = [self.gradients() for _ in plan.threads]
        scratches = self._scratches(self._d_scratch_size(plan), plan)
        run_together(
            [
                self._back(chunks, dy, below, kept, scratch, plan.stride, own.parts)
                for scratch, chunks, own in zip(scratches, plan.threads, found, strict=True)
            ]
        )
        _add_up([gradients.block for gradients in found], self.kernels.add)
        parts = found[0].parts
        return tuple(parts) if self.outer is not None else (below, *parts)

    def unpack(self, kept: Tensor, batch: int) -> list[Tensor]:
        """x, H, T, an independent C, and y of highway layers, from what was kept: each `(layer, batch, block)`."""
        parts = []
        for chunk in (chunk for chunks in self.plan(batch, torch.get_num_threads()).threads for chunk in chunks):
            size = self.open * (1 + self.affine_maps) * self.width * chunk.padded_samples
            end = chunk.start + size + self.width * chunk.padded_samples
            flat = kept[chunk.start : end].view(-1, self.width, chunk.padded_samples)
            parts.append(flat[..., : chunk.samples].transpose(1, 2))  # (layer * part, sample, block)
        every = torch.cat(parts, 1)
        layers = every[:-1].unflatten(0, (self.open, 1 + self.affine_maps)).unbind(1)
        outputs = torch.cat([layers[0][1:], every[-1:]])
        return [*layers, outputs]

    def states(self, kept: Tensor, batch: int) -> Tensor:
        """The inputs of all layers and the output of the last, from what was kept: `(layer + 1, batch, block)`."""
        plan = self.plan(batch, torch.get_num_threads())
        result = kept.new_empty(self.open + 1, batch, self.width)
        for chunk in (chunk for chunks in plan.threads for chunk in chunks):
            rows, size = slice(chunk.first, chunk.first + chunk.samples), self.open * plan.stride
            end = chunk.start + (size + self.width) * chunk.padded_samples
            flat = kept[chunk.start : end].view(-1, chunk.padded_samples)
            layers = flat[:size].unflatten(0, (self.open, plan.stride))
            result[:-1, rows] = layers[:, : self.width, : chunk.samples].transpose(1, 2)
            result[-1, rows] = flat[size:, : chunk.samples].T
        return result

    def gradients(self) -> StackGradients:
        """Memory for the gradients of one thread; those of weights are written, those of biases accumulated."""
        like = (
            self.weight,
            self.bias,
            *(() if self.outer is None else (*self.outer.input_layer, *self.outer.classifier)),
        )
        offsets, biases, numbers = _layout(*(one.shape for one in like))
        block = acquire_buffer(numbers)
        block[biases:].zero_()
        parts = [block.as_strided(one.shape, one.stride(), offset) for one, offset in zip(like, offsets, strict=True)]
        if self.open < len(self.weight):
            parts[0].zero_()  # closed layers have no gradient
        return StackGradients(block, parts, biases)

    def _keep_all(self, chunk: Chunk, x: Tensor, y: Tensor, kept: Tensor, scratch: int, stride: int) -> list[Call]:
        """Keep the activations of every layer."""
        first = kept.data_ptr() + chunk.start * _NUMBER
        last = first + self.open * stride * chunk.padded_samples * _NUMBER
        return [
            *self._copy_or_embed(x, first, chunk, scratch),
            self._through(first, 0, self.open, stride, chunk, scratch),
            self._copy_or_classify(last, y, chunk, scratch),
        ]

    def _keep_some(self, chunk: Chunk, x: Tensor, y: Tensor, kept: Tensor, scratch: int, _stride: int) -> list[Call]:
        """Keep the input of every segment, or nothing."""
        step, size = self.segment or self.open, self.width * chunk.padded_samples
        free = scratch + (1 + self.affine_maps) * size * _NUMBER
        calls = self._copy_or_embed(x, scratch, chunk, free)
        for number, layer in enumerate(range(0, self.open, step)):
            if self.segment:
                there = kept.data_ptr() + (chunk.start + number * size) * _NUMBER
                calls.append(self._row(self.kernels.copy, size, scratch, there))
            calls.append(self._through(scratch, layer, min(step, self.open - layer), 0, chunk, free))
        return [*calls, self._copy_or_classify(scratch, y, chunk, free)]

    def _back(
        self,
        chunks: tuple[Chunk, ...],
        dy: Tensor,
        below: Tensor,
        kept: Tensor,
        scratch: int,
        stride: int,
        parts: list[Tensor],
    ) -> list[Call]:
        """Back through one thread's chunks; the scratch memory has d first, and recomputed layers last."""
        calls: list[Call] = []
        for number, chunk in enumerate(chunks):
            if self.outer is None:
                calls += self._copy_in(dy, scratch, chunk)
            else:
                y = kept.data_ptr() + (chunk.start + self.open * stride * chunk.padded_samples) * _NUMBER
                free = scratch + self.width * chunk.padded_samples * _NUMBER
                calls.append(self.outer.d_classify(y, dy, scratch, free, chunk, (parts[4], parts[5]), number > 0))
            step, size = self.open if self.segment == 1 else self.segment, self.width * chunk.padded_samples
            for layer in reversed(range(0, self.open, step)):
                count = min(step, self.open - layer)
                x = kept.data_ptr() + (chunk.start + layer // step * size) * _NUMBER
                if self.segment > 1:
                    again = scratch + self._derivatives(chunk.padded_samples, chunk.lanes) * _NUMBER
                    free = scratch + (1 + self.affine_maps) * size * _NUMBER
                    calls += [
                        self._row(self.kernels.copy, size, x, again),
                        self._through(again, layer, count, stride, chunk, free),
                    ]
                    x = again
                calls.append(self._back_through(x, layer, count, stride, chunk, scratch, parts, number > 0))
            if self.outer is None:
                calls.append(self._copy_out(scratch, below, chunk))
            else:
                x = kept.data_ptr() + chunk.start * _NUMBER
                calls.append(self.outer.d_embed(below, x, scratch, chunk, (parts[2], parts[3]), number > 0))
        return calls

    def step_calls(
        self, chunk: Chunk, x: Tensor, kept: int, scratch: int, stride: int, gradients: StackGradients, add: bool
    ) -> tuple[list[Call], list[Call]]:
        """The calls of a training step before the classifier and after it, which leaves d in the scratch memory.

        `kept` is memory for the activations of this chunk alone.
        """
        assert self.outer is not None
        parts = gradients.parts
        forward = [
            self.outer.embed(x, kept, chunk, scratch),
            self._through(kept, 0, self.open, stride, chunk, scratch),
        ]
        backward = [
            self._back_through(kept, 0, self.open, stride, chunk, scratch, parts, add),
            self.outer.d_embed(x, kept, scratch, chunk, (parts[2], parts[3]), add),
        ]
        return forward, backward

    def linear_step_calls(
        self, chunk: Chunk, x: Tensor, kept: int, _scratch: int, _stride: int, _gradients: StackGradients, _add: bool
    ) -> tuple[list[Call], list[Call]]:
        """The calls of a training step of a classifier alone, as for `step_calls`."""
        return self._copy_in(x, kept, chunk), []

    def step_scratch_size(self, plan: Plan, loss: int) -> int:
        """The scratch size of one thread's training step, with that of the loss, in numbers."""
        assert self.outer is not None
        forward = max(self.outer.scratch_size(plan.longest), self._forward_scratch_size(plan.longest))
        return max(forward, self._d_scratch_size(plan), self.width * plan.longest + loss)

    def _back_through(
        self, x: int, layer: int, count: int, stride: int, chunk: Chunk, scratch: int, parts: list[Tensor], add: bool
    ) -> Call:
        """Back through `count` layers from `layer` on."""
        arguments = (
            *(self.weight.data_ptr(), parts[0].data_ptr(), parts[1].data_ptr()),
            *(self.layers.data_ptr() + layer * 8, count, x, stride * chunk.padded_samples * _NUMBER, scratch),
            *(self.width, chunk.vectors, chunk.samples, int(add)),
        )
        return self.kernels.backward, arguments

    def _scratches(self, size: int, plan: Plan) -> list[int]:
        """The addresses of scratch memory of this size for every thread."""
        start = thread_scratch(size * len(plan.threads)).data_ptr()
        return [start + i * size * _NUMBER for i in range(len(plan.threads))]

    def _d_scratch_size(self, plan: Plan) -> int:
        """The scratch size of one thread's backward pass, in numbers."""
        lanes = plan.threads[0][0].lanes
        again = 0 if self.segment == 1 else ((self.segment + 1) * plan.stride + self.width) * plan.longest
        outer = 0 if self.outer is None else self.width * plan.longest + self.outer.d_scratch_size(plan.longest, lanes)
        return max(self._derivatives(plan.longest, lanes) + again, outer)

    def _derivatives(self, padded_samples: int, lanes: int) -> int:
        """The size of d and dz, and of x as rows of samples or of what products in bfloat16 need."""
        free = padded_samples * -(-self.width // lanes) * lanes
        if self.bfloat16:
            from verydeep.kernels.dense._bfloat16_products import backward_scratch

            backward = backward_scratch(self.affine_maps, self.width, padded_samples, lanes)
            free = max(backward, self._forward_scratch_size(padded_samples))  # forward where layers are recomputed
        return (1 + self.affine_maps) * self.width * padded_samples + free

    def _forward_scratch_size(self, padded_samples: int) -> int:
        """The size of what products in bfloat16 need in a forward pass."""
        if not self.bfloat16:
            return 0
        from verydeep.kernels.dense._bfloat16_products import forward_scratch

        return forward_scratch(self.affine_maps, self.width, padded_samples, _lanes())

    def _copy_or_embed(self, x: Tensor, matrix: int, chunk: Chunk, scratch: int) -> list[Call]:
        """Fill the memory of the first layer of the stack."""
        return self._copy_in(x, matrix, chunk) if self.outer is None else [self.outer.embed(x, matrix, chunk, scratch)]

    def _copy_or_classify(self, matrix: int, y: Tensor, chunk: Chunk, scratch: int) -> Call:
        """Copy the output of the last layer, or classify it."""
        return (
            self._copy_out(matrix, y, chunk) if self.outer is None else self.outer.classify(matrix, y, chunk, scratch)
        )

    def _copy_in(self, x: Tensor, matrix: int, chunk: Chunk) -> list[Call]:
        """Copy samples, (sample, block), into a matrix padded with zeros."""
        rows = x.data_ptr() + chunk.first * self.width * _NUMBER
        column, row, width = chunk.samples * _NUMBER, chunk.padded_samples * _NUMBER, self.width * _NUMBER
        padding = matrix + column, row, self.width, chunk.padded_samples - chunk.samples
        return [
            (self.kernels.transpose, (rows, width, matrix, row, chunk.samples, self.width)),
            (self.kernels.zero_columns, padding),
        ]

    def _copy_out(self, matrix: int, y: Tensor, chunk: Chunk) -> Call:
        """Copy samples out of a matrix."""
        rows = y.data_ptr() + chunk.first * self.width * _NUMBER
        row, width = chunk.padded_samples * _NUMBER, self.width * _NUMBER
        return self.kernels.transpose, (matrix, row, rows, width, self.width, chunk.samples)

    def _row(self, kernel: "Function", numbers: int, *addresses: int) -> Call:
        """A formula over this many numbers, in whole registers."""
        return kernel, (1, numbers // _lanes(), *addresses)

    def _through(self, x: int, layer: int, count: int, stride: int, chunk: Chunk, scratch: int) -> Call:
        """Forward through `count` layers from `layer` on."""
        layers = self.layers.data_ptr() + layer * 8
        step = stride * chunk.padded_samples * _NUMBER
        parameters = self.weight.data_ptr(), self.bias.data_ptr()
        return self.kernels.forward, (*parameters, layers, count, x, step, scratch, self.width, chunk.vectors)


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
    from verydeep.kernels.ir._processor import LANES

    return LANES
