"""Whole training steps in kernels, against torch's operations and optimiser in float64."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

from verydeep.cpu import cpu_settings
from verydeep.kernels import TrainingSteps, UpdateRule
from verydeep.kernels.dense import _stack_call, _training_steps
from verydeep.kernels.ir._interpreter import interpret
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.runtime import _threads
from verydeep.kernels.runtime._pool import ThreadPool
from verydeep.kernels.runtime._table import Job
from verydeep.models import MLP, build, create_model

from .test_interpreted_operators import _Interpreted

SAMPLES, STEPS, FIRST = 90, 4, 3
RATE, MOMENTUM, DECAY = 0.1, 0.9, 0.01
LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross-entropy": lambda z, y: F.cross_entropy(z, y[:, 0].long(), reduction="sum"),
    "squared": lambda z, y: F.mse_loss(z, y, reduction="sum") / y.shape[1],
    "binary-cross-entropy": lambda z, y: F.binary_cross_entropy_with_logits(z, y, reduction="sum") / y.shape[1],
}


class Problem:
    """A network, data, and the optimiser's memory."""

    def __init__(self, kind: str, depth: int, width: int, inputs: int, outputs: int, loss: str, **more: Any) -> None:
        torch.manual_seed(0)
        model = create_model(f"{kind}-mlp", depth=depth, width=width, input_shape=(inputs,), classes=outputs, **more)
        assert isinstance(model, MLP)
        self.model, self.loss = model, loss
        self.x, self.order = torch.randn(SAMPLES, inputs), torch.randperm(SAMPLES)
        draws: dict[str, Tensor] = {
            "cross-entropy": torch.randint(0, outputs, (SAMPLES, 1)).float(),
            "squared": torch.randn(SAMPLES, outputs),
            "binary-cross-entropy": (torch.rand(SAMPLES, outputs) > 0.5).float(),
        }
        self.y = draws[loss]
        self.memory = {parameter: torch.zeros_like(parameter) for parameter in model.parameters()}
        self.rates = torch.linspace(RATE, RATE / 2, STEPS)[:, None].repeat(1, 2)
        self.rates[:, 1] *= 2  # biases

    def steps(self, batch: int, nesterov: bool = True) -> TrainingSteps:
        rules: dict[nn.Parameter, UpdateRule] = {}
        for parameter, memory in self.memory.items():
            bias = parameter.dim() == 1 or parameter is getattr(self.model.stack, "bias", None)
            rules[parameter] = UpdateRule(int(bias), MOMENTUM, nesterov, 0.0 if bias else DECAY, memory)
        return self.model.training_steps(rules, self.x, self.y, self.loss, batch)

    def reference(self, batch: int, nesterov: bool = True) -> tuple[list[Tensor], list[tuple[float, float]]]:
        """The weights and sums of a step-by-step training in float64."""
        model = build(self.model.config).double()
        model.load_state_dict(self.model.state_dict())
        biases = [p for name, p in model.named_parameters() if name.endswith("bias")]
        weights = [p for name, p in model.named_parameters() if not name.endswith("bias")]
        groups: list[dict[str, Any]] = [{"params": weights, "weight_decay": DECAY}, {"params": biases}]
        optimiser = torch.optim.SGD(groups, RATE, MOMENTUM, nesterov=nesterov)
        sums = []
        for step, rates in enumerate(self.rates.double()):
            rows = self.order[FIRST + step * batch : FIRST + (step + 1) * batch]
            z, y = model(self.x[rows].double()), self.y[rows].double()
            loss = LOSSES[self.loss](z, y)
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = float(rate)
            optimiser.zero_grad()
            (loss / batch).backward()
            optimiser.step()
            right = (z.argmax(1) == y[:, 0]).sum() if self.loss == "cross-entropy" else ((z > 0) == (y == 1)).sum()
            sums.append((float(loss.detach()), float(right) / (1 if self.loss == "cross-entropy" else y.shape[1])))
        return [p.detach() for p in model.parameters()], sums


def check(problem: Problem, sums: Tensor, wanted: tuple[list[Tensor], list[tuple[float, float]]]) -> None:
    weights, expected = wanted
    columns = slice(1) if problem.loss == "squared" else slice(2)  # it has no number of correct predictions
    torch.testing.assert_close(sums[:, columns], torch.tensor(expected).double()[:, columns], rtol=1e-4, atol=1e-4)
    for found, each in zip(problem.model.parameters(), weights, strict=True):
        torch.testing.assert_close(found.double(), each, rtol=1e-4, atol=1e-5)


KINDS = st.sampled_from(["plain", "residual", "highway"])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    kind=KINDS,
    depth=st.integers(0, 5),
    width=st.integers(1, 2 * LANES + 2),
    inputs=st.integers(1, 3 * LANES),
    outputs=st.integers(1, LANES + 2),
    loss=st.sampled_from(sorted(LOSSES)),
    batch=st.integers(1, SAMPLES // STEPS - 1),
    nesterov=st.booleans(),
    threads=st.sampled_from([1, 2]),
)
def test_steps_are_those_of_torch(
    kind: str, depth: int, width: int, inputs: int, outputs: int, loss: str, batch: int, nesterov: bool, threads: int
) -> None:
    problem = Problem(kind, depth, width, inputs, outputs, loss)
    wanted = problem.reference(batch, nesterov)
    with cpu_settings(threads):
        sums = problem.steps(batch, nesterov).run(problem.order, FIRST, problem.rates)
    check(problem, sums, wanted)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_bits_do_not_depend_on_how_many_steps_a_call_runs(threads: int) -> None:
    with cpu_settings(threads):
        found = []
        for parts in ([STEPS], [1] * STEPS, [3, STEPS - 3]):
            problem, done, sums = Problem("highway", 5, 20, 30, 7, "cross-entropy"), 0, []
            steps = problem.steps(20)
            for part in parts:
                sums.append(steps.run(problem.order, done * 20, problem.rates[done : done + part]))
                done += part
            found.append([torch.cat(sums), *(p.detach() for p in problem.model.parameters())])
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_whoever_executes_the_jobs_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    def train() -> list[Tensor]:
        problem = Problem("highway", 6, 20, 48, 10, "cross-entropy")
        sums = problem.steps(80).run(problem.order, 0, problem.rates[:1])
        return [sums, *(p.detach() for p in problem.model.parameters())]

    with cpu_settings(3):
        expected = train()
        for helpers in (0, 1, 2):
            pool = ThreadPool(helpers)
            monkeypatch.setattr(_threads, "_threads", pool)
            for _ in range(5):
                assert all(torch.equal(a, b) for a, b in zip(train(), expected, strict=True))
            pool.stop()


def test_small_losses_and_their_gradients_are_exact() -> None:
    """Where a network is nearly certain, the terms of the other classes must not drown in rounding."""
    for sure in (5.0, 12.0, 30.0):
        problem = Problem("plain", 2, 4, 16, 3, "cross-entropy")
        model = problem.model
        with torch.no_grad():
            model.classifier.weight.zero_()
            model.classifier.bias.copy_(torch.tensor([sure, 0.0, -1.0]))
        problem.y.zero_()
        problem.rates.fill_(1.0)
        wanted = F.cross_entropy(model.classifier.bias.double()[None], torch.tensor([0]))
        gradient = torch.softmax(model.classifier.bias.detach().double(), 0)
        sums = problem.steps(20).run(problem.order, 0, problem.rates[:1])
        assert float(sums[0, 0]) == pytest.approx(20 * float(wanted.detach()), rel=1e-5)
        momentum = problem.memory[model.classifier.bias].double()
        torch.testing.assert_close(momentum[1:], gradient[1:], rtol=1e-5, atol=0)
        assert float(momentum[0]) == pytest.approx(float(-gradient[1:].sum()), rel=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_network_that_overflows_has_no_finite_loss(bad: float) -> None:
    problem = Problem("plain", 2, 4, 16, 3, "cross-entropy")
    with torch.no_grad():
        problem.model.classifier.bias[1] = bad
    sums = problem.steps(20).run(problem.order, 0, problem.rates[:2])
    assert not sums[:, 0].isfinite().any()


class _InterpretedProgram:
    """Runs the phases of a program in the interpreter."""

    interpreter: _Interpreted

    def __init__(self, phases: Sequence[Sequence[Job]]) -> None:
        self.phases = phases

    def run(self, times: int) -> None:
        for _ in range(times):
            for function, arguments in (call for jobs in self.phases for job in jobs for call in job):
                interpret(function.kernel, self.interpreter.memory, *arguments)
        self.interpreter.run([])


@contextmanager
def interpreted() -> Iterator[None]:
    interpreter = _InterpretedProgram.interpreter = _Interpreted()
    fakes: list[tuple[Any, str, Any]] = [
        *((module, "acquire_buffer", interpreter.acquire_buffer) for module in (_stack_call, _training_steps)),
        (_training_steps, "Program", _InterpretedProgram),
        (Tensor, "data_ptr", lambda tensor: interpreter.data_ptr(tensor)),  # noqa: PLW0108 - becomes a method
    ]
    patches = [patch.object(*fake) for fake in fakes]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    kind=KINDS,
    depth=st.integers(0, 3),
    width=st.integers(1, LANES + 2),
    inputs=st.sampled_from([3, LANES, LANES + 5]),
    outputs=st.integers(1, LANES + 2),
    loss=st.sampled_from(sorted(LOSSES)),
    batch=st.integers(1, LANES + 3),
    threads=st.sampled_from([1, 2]),
)
def test_steps_stay_inside_their_memory(
    kind: str, depth: int, width: int, inputs: int, outputs: int, loss: str, batch: int, threads: int
) -> None:
    problem = Problem(kind, depth, width, inputs, outputs, loss)
    wanted = problem.reference(batch)
    with cpu_settings(threads), interpreted():
        sums = problem.steps(batch).run(problem.order, FIRST, problem.rates)
    check(problem, sums, wanted)
