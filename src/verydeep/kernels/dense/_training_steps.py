"""Whole training steps of a fully connected network: a batch, both passes, the loss and the update in one call."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from verydeep.kernels.dense._outer_layers_call import OuterLayersCall
from verydeep.kernels.dense._stack_call import StackCall, StackGradients
from verydeep.kernels.dense._stack_plan import Chunk, activation_of
from verydeep.kernels.runtime._buffers import acquire_buffer
from verydeep.kernels.runtime._program import Program
from verydeep.kernels.runtime._table import Call, Job

if TYPE_CHECKING:
    from verydeep.kernels.runtime._compile import Function

_NUMBER = 4  # bytes
_REGISTER = 16  # numbers, of the largest kind
_MOST = 64  # steps of one call of the kernels
_SUMS = 2  # per chunk: the loss, and the number of correct predictions


class UpdateRule(NamedTuple):
    """How stochastic gradient descent updates a parameter.

    Attributes:
        group: The number of its group, which has a learning rate for each step.
        momentum: The factor of earlier updates.
        nesterov: Whether the momentum is Nesterov's.
        weight_decay: The factor of the weights that is added to gradients.
        memory: The optimiser's sum of earlier gradients, of the shape of the parameter.
    """

    group: int
    momentum: float
    nesterov: bool
    weight_decay: float
    memory: Tensor


Trained = tuple[tuple[Tensor, UpdateRule], tuple[Tensor, UpdateRule]]
"""Weight and bias of a layer, and how they are updated."""


class _StepKernels(NamedTuple):
    gather: "Function"
    next_step: "Function"
    classify_and_back: "Function"
    zero: "Function"
    update: "Function"
    update_nesterov: "Function"


@cache
def _kernels(loss: str) -> _StepKernels:
    from verydeep.kernels.dense._training_loops import gather_rows, make_classify_and_back, make_update, next_step
    from verydeep.kernels.ir._fill import zero_vectors
    from verydeep.kernels.runtime._compile import compile_kernels

    updates = [make_update(nesterov) for nesterov in (False, True)]
    kernels = [gather_rows, next_step, make_classify_and_back(loss), zero_vectors, *updates]
    return _StepKernels(*compile_kernels(f"training-steps-{loss}", kernels))


class TrainingSteps:
    """Steps of stochastic gradient descent on batches of one size.

    Parameters and the optimiser's memory are read and written in place. The bits of the result depend on the number of
    threads, and not on how many steps a call runs.

    Args:
        layers: int64, the layers of the stack.
        formula: The formula of the stack, as for `run_mlp`; without a stack, the activation of the input layer.
        stack: Weight and bias of the stack, contiguous float32, and how each is updated; None if there is no stack.
        input_layer: The same of the input layer; None if there is none, and no stack either.
        classifier: The same of the classifier.
        samples: All samples, `(n, input)`, contiguous float32.
        targets: Their targets, `(n, columns)`, contiguous float32; for classes a column of class numbers.
        loss: The name of the loss: "cross-entropy", "squared" or "binary-cross-entropy".
        batch: The number of samples per batch.
        threads: The number of threads that share a batch.
        bfloat16: Whether products of the stack round their factors to bfloat16.
    """

    def __init__(
        self,
        layers: Tensor,
        formula: str,
        stack: Trained | None,
        input_layer: Trained | None,
        classifier: Trained,
        samples: Tensor,
        targets: Tensor,
        loss: str,
        batch: int,
        threads: int,
        bfloat16: bool = False,
    ) -> None:
        self._kernels = _kernels(loss)
        self._samples, self._targets, self._is_linear = samples, targets, input_layer is None
        inputs = samples.shape[1]
        if input_layer is None:
            input_layer = _nothing(0, inputs), _nothing(0)
        if stack is None:
            width = classifier[0][0].shape[1]
            stack = _nothing(0, width, width), _nothing(0, width)
        trained = *stack, *input_layer, *classifier
        self._parameters, self._rules = [tensor for tensor, _ in trained], [rule for _, rule in trained]
        self._batch, self._groups = batch, 1 + max(rule.group for rule in self._rules)
        self._padded = _PaddedInputs(self._parameters, self._rules)
        weight, bias, *outer = self._parameters
        self._outer = OuterLayersCall((outer[0], outer[1]), (outer[2], outer[3]), activation_of(formula))
        self._stack = StackCall(weight, bias, layers, formula, 1, self._outer, bfloat16)
        self._plan = self._stack.plan(batch, threads)
        self._chunks = sum(map(len, self._plan.threads))
        self._x = _zeros(batch, self._outer.inputs)  # stays zero where rows are longer than those of the samples
        self._y = _zeros(batch, targets.shape[1])
        self._counters = _zeros(2, dtype=torch.int64)  # the position of the batch in the order, and the step
        self._scale = _filled([[1 / batch, 1 / self._outer.classes]])
        self._constants = _filled([[rule.momentum, rule.weight_decay] for rule in self._rules])
        self._order, self._order_from = _zeros(len(samples), dtype=torch.int64), _zeros(0)
        self._rates, self._sums = _zeros(_MOST, self._groups), _zeros(_MOST, self._chunks, _SUMS)
        self._program = self._make_program()

    def run(self, order: Tensor, first: int, rates: Tensor) -> Tensor:
        """Train on one batch after the other.

        Args:
            order: The rows of the samples in the order of training, int64.
            first: The position of the first batch in the order.
            rates: The learning rates of each group at each step, float32, `(step, group)`.

        Returns:
            The loss and the number of correct predictions of each step, summed over its batch; float64, `(step, 2)`.
        """
        if self._order_from is not order:
            self._order.copy_(order)
            self._order_from = order
        self._padded.read()
        parts = [self._run(first + n * self._batch, rates[n : n + _MOST]) for n in range(0, len(rates), _MOST)]
        self._padded.write()
        return torch.cat(parts)

    def _run(self, first: int, rates: Tensor) -> Tensor:
        """At most `_MOST` steps."""
        steps = len(rates)
        self._rates[:steps] = rates
        self._counters[0], self._counters[1] = first, 0
        self._program.run(steps)
        sums = self._sums[:steps].double()
        total = sums[:, 0]
        for chunk in range(1, self._chunks):  # always in the same order
            total = total + sums[:, chunk]
        return total

    def _make_program(self) -> Program:
        found = [self._stack.gradients() for _ in self._plan.threads]
        self._gradients = found
        self._memory = [self._thread_memory() for _ in self._plan.threads]
        self._addresses = [self._classifier_addresses(each) for each in found]
        jobs: list[Job] = []
        number = 0
        for chunks, memory, gradients, addresses in zip(
            self._plan.threads, self._memory, found, self._addresses, strict=True
        ):
            zero = self._kernels.zero, (gradients.biases, gradients.bias_registers)
            calls: list[Call] = [zero]
            for i, chunk in enumerate(chunks):
                calls += self._train_chunk(chunk, number, memory, gradients, addresses, i > 0)
                number += 1
            jobs.append(calls)
        position, step = self._counters.data_ptr(), self._counters.data_ptr() + 8
        last: Job = [(self._kernels.next_step, (position, self._batch, step))]
        return Program([jobs, self._updates([gradients.block for gradients in found]), [last]])

    def _thread_memory(self) -> tuple[Tensor, Tensor]:
        """What the backward pass needs of a chunk, and scratch memory."""
        plan, longest = self._plan, self._plan.longest
        rows = self._stack.open * plan.stride + self._stack.width + _REGISTER  # the last ones are read as padding
        scratch = self._stack.step_scratch_size(plan, self._loss_scratch(longest))
        return acquire_buffer(rows * longest), acquire_buffer(scratch)

    def _loss_scratch(self, padded_samples: int) -> int:
        wide = self._stack.width + _REGISTER  # rows of whole registers
        return padded_samples * (self._outer.classes + self._y.shape[1] + 2 + wide)

    def _classifier_addresses(self, gradients: StackGradients) -> Tensor:
        """What the kernel of the classifier reads."""
        tensors = *self._outer.classifier, *gradients.parts[4:6]
        return _filled([*(tensor.data_ptr() for tensor in tensors), self._y.shape[1]], torch.int64)

    def _train_chunk(
        self,
        chunk: Chunk,
        number: int,
        memory: tuple[Tensor, Tensor],
        gradients: StackGradients,
        addresses: Tensor,
        add: bool,
    ) -> list[Call]:
        """Gather a chunk of samples, go forward and back through all layers."""
        kept, scratch = (tensor.data_ptr() for tensor in memory)
        position, step = self._counters.data_ptr(), self._counters.data_ptr() + 8
        rows = [
            (
                self._kernels.gather,
                (
                    *(source.data_ptr(), source.shape[1] * _NUMBER, self._order.data_ptr(), position),
                    *(to.data_ptr(), to.shape[1] * _NUMBER, chunk.first, chunk.samples, source.shape[1]),
                ),
            )
            for source, to in ((self._samples, self._x), (self._targets, self._y))
        ]
        columns = self._y.shape[1]
        d, free = scratch, scratch + self._stack.width * chunk.padded_samples * _NUMBER
        outputs = kept + self._stack.open * self._plan.stride * chunk.padded_samples * _NUMBER
        back = (
            self._kernels.classify_and_back,
            (
                *(addresses.data_ptr(), outputs, d),
                *(self._y.data_ptr() + chunk.first * columns * _NUMBER, columns * _NUMBER),
                *(self._sums.data_ptr() + number * _SUMS * _NUMBER, self._chunks * _SUMS * _NUMBER, step),
                *(self._scale.data_ptr(), free, self._stack.width, self._outer.classes, chunk.vectors),
                *(chunk.samples, int(add)),
            ),
        )
        through = self._stack.linear_step_calls if self._is_linear else self._stack.step_calls
        forward, backward = through(chunk, self._x, kept, scratch, self._plan.stride, gradients, add)
        return [*rows, *forward, back, *backward]

    def _update(self, parameter: int, addresses: Sequence[int], numbers: int) -> Call:
        """Update numbers of a parameter; the addresses are those of the weight, its gradient and its memory."""
        rule = self._rules[parameter]
        update = self._kernels.update_nesterov if rule.nesterov else self._kernels.update
        rates = self._rates.data_ptr() + rule.group * _NUMBER, self._groups * _NUMBER
        constants = self._constants.data_ptr() + parameter * 2 * _NUMBER
        return update, (*addresses, *rates, self._counters.data_ptr() + 8, constants, numbers)

    def _updates(self, blocks: Sequence[Tensor]) -> list[Job]:
        """Add up the gradients of all threads and update the parameters, each thread a part of every parameter."""
        threads, own = len(blocks), self._gradients[0].parts
        jobs: list[list[Call]] = [[] for _ in range(threads)]
        for n, (parameter, rule, gradient) in enumerate(zip(self._parameters, self._rules, own, strict=True)):
            offset = gradient.data_ptr() - blocks[0].data_ptr()
            registers = -(-parameter.numel() // _lanes())
            bounds = [registers * i // threads * _lanes() for i in range(threads + 1)]
            for job, (first, last) in zip(jobs, pairwise(bounds), strict=True):
                if first == last:
                    continue
                to, *others = (block.data_ptr() + offset + first * _NUMBER for block in blocks)
                for other in others:
                    job.append((self._stack.kernels.add, (1, (last - first) // _lanes(), to, other, to)))
                there = [tensor.data_ptr() + first * _NUMBER for tensor in (parameter, gradient, rule.memory)]
                job.append(self._update(n, there, min(last, parameter.numel()) - first))
        return list(jobs)


class _PaddedInputs:
    """Copies of the input layer's weight and its memory whose rows are whole registers, if they are not."""

    def __init__(self, parameters: list[Tensor], rules: list[UpdateRule]) -> None:
        self._pairs: list[tuple[Tensor, Tensor]] = []
        missing = -parameters[2].shape[1] % _lanes()
        if missing and parameters[2].numel():
            weight, memory = (torch.nn.functional.pad(each, (0, missing)) for each in (parameters[2], rules[2].memory))
            self._pairs = [(parameters[2], weight), (rules[2].memory, memory)]
            parameters[2], rules[2] = weight, rules[2]._replace(memory=memory)

    def read(self) -> None:
        for own, padded in self._pairs:
            padded[:, : own.shape[1]] = own

    def write(self) -> None:
        for own, padded in self._pairs:
            own.copy_(padded[:, : own.shape[1]])


def _nothing(*shape: int) -> tuple[Tensor, UpdateRule]:
    """The parameter of a layer that a network does not have."""
    empty = _zeros(*shape)
    return empty, UpdateRule(0, 0.0, False, 0.0, empty)


def _zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Memory for kernels, independent of torch's default type, device and inference mode."""
    with torch.inference_mode(False):
        return torch.zeros(shape, dtype=dtype, device="cpu")


def _filled(values: Sequence[object], dtype: torch.dtype = torch.float32) -> Tensor:
    """The same, with these values."""
    with torch.inference_mode(False):
        return torch.tensor(values, dtype=dtype, device="cpu")


def _lanes() -> int:
    from verydeep.kernels.ir._processor import LANES

    return LANES
