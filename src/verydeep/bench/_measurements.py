"""What is measured, in a process of its own: competitors, the fastest matrix product, depth and the first call."""

import copy
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from verydeep.bench._competitors import (
    Competitor,
    CompiledCompetitor,
    OurCompetitor,
    TorchCompetitor,
    endless,
    naive_network,
    our_network,
    reference_network,
)
from verydeep.bench._tasks import Case
from verydeep.bench._timing import measure
from verydeep.data import Batches, Split
from verydeep.errors import UserError

COMPILED_UP_TO = 100  # layers; torch.compile takes many minutes for more
_CHECKED_STEPS = 3
_STEPS, _LAYERS = 50, 5000  # at a time, at most


def compare(case: dict[str, Any], seconds: float, rounds: int, compile: bool) -> dict[str, Any]:
    """Time all competitors and say why others are missing; refuse if their losses differ."""
    size = Case(**case)
    batches = _batches(size)
    competitors, missing = _competitors(size, next(endless(batches)), compile)
    result: dict[str, Any] = {"case": case, "missing": missing}
    steps = _CHECKED_STEPS if size.mode == "train" else 0
    result["losses"] = {name: _losses(one, batches, steps) for name, one in competitors.items()}
    result["compile_seconds"] = {name: one.compile_seconds for name, one in competitors.items() if one.compile_seconds}
    wanted = torch.tensor(result["losses"]["eager"])
    losses = {name: torch.tensor(values) for name, values in result["losses"].items()}
    wrong = [name for name, values in losses.items() if not torch.allclose(values, wanted, rtol=1e-3, atol=1e-4)]
    if wrong:
        return result | {"refused": f"{', '.join(wrong)}: the loss differs from eager PyTorch's after the same steps"}
    works = {name: _work(one, size, batches) for name, one in competitors.items()}
    return result | {"times": measure(works, seconds, rounds)}


def _competitors(
    case: Case, batch: tuple[Tensor, Tensor], compile: bool
) -> tuple[dict[str, Competitor], dict[str, str]]:
    ours = our_network(case)
    naive = reference_network(ours) if case.kind == "named" else naive_network(ours)
    competitors: dict[str, Competitor] = {
        "ours": OurCompetitor(ours),
        "eager": TorchCompetitor(copy.deepcopy(naive)),
    }
    missing = {}
    if not compile:
        missing["compiled"] = "not measured"
    elif case.depth > COMPILED_UP_TO:
        missing["compiled"] = f"compiling takes minutes beyond depth {COMPILED_UP_TO}"
    else:
        try:
            competitors["compiled"] = CompiledCompetitor(copy.deepcopy(naive), *batch, case.mode)
        except (UserError, RuntimeError) as error:
            missing["compiled"] = str(error).splitlines()[0]
    if find_spec("jax") is None:
        missing["jax"] = "jax is not installed"
    elif not isinstance(naive, nn.Sequential):
        missing["jax"] = "not written in JAX"
    else:
        from verydeep.bench._jax import JaxCompetitor

        competitors["jax"] = JaxCompetitor(case, naive, *batch)
    if case.mode == "train":
        missing["onnx"] = "does not train"
    else:
        try:
            from verydeep.bench._onnx_runtime import OnnxRuntimeCompetitor

            competitors["onnx"] = OnnxRuntimeCompetitor(ours, batch[0])
        except UserError as error:
            missing["onnx"] = str(error)
    return competitors, missing


def _batches(case: Case) -> Batches:
    random = torch.Generator().manual_seed(1)
    samples = max(2000, 4 * case.batch)
    x = torch.rand((samples, *case.input_shape), generator=random)
    y = torch.randint(0, 10, (samples,), generator=random)
    return Batches(Split(x, y), case.batch, seed=0, drop_last=True)


def _losses(competitor: Competitor, batches: Batches, steps: int) -> list[float]:
    """The loss on one batch before the first step and after each step."""
    first = next(endless(batches))
    losses = [competitor.loss(*first)]
    train, _ = competitor.trainer(batches, 1)
    for _ in range(steps):
        train()
        losses.append(competitor.loss(*first))
    return losses


def _work(competitor: Competitor, case: Case, batches: Batches) -> tuple[Callable[[], None], int]:
    """What is timed, and how many steps it takes."""
    if case.mode == "train":
        return competitor.trainer(batches, max(1, min(_STEPS, _LAYERS // max(case.depth, 1))))
    x, _ = next(endless(batches))
    return lambda: competitor.infer(x), 1


def matmul_peak(seconds: float) -> dict[str, Any]:
    """The speed of the machine's fastest matrix product, in GFLOP/s."""
    best = 0.0
    for size in (512, 1024, 2048):
        a, b, c = (torch.randn(size, size) for _ in range(3))
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            torch.mm(a, b, out=c)
            best = max(best, 2e-9 * size**3 / (time.perf_counter() - start))
    return {"gflops": best, "threads": torch.get_num_threads()}


def depth(depth: int, seconds: float, recompute: bool) -> dict[str, Any]:
    """Time per layer and peak memory of the process at one depth, with width 50 and batch 100."""
    case = Case("highway", depth, 50, 100, torch.get_num_threads(), "train")
    batches = _batches(case)
    _work(OurCompetitor(our_network(replace(case, depth=2))), case, batches)[0]()  # loads what a first step loads
    before, model = _peak_memory(), our_network(case)
    if recompute:
        model.checkpoint_activations()
    work = _work(OurCompetitor(model), case, batches)
    times = measure({"ours": work}, seconds, 3)["ours"]
    names = {"depth": depth, "recompute": recompute, "threads": case.threads}
    return names | {"us_per_layer": 1e3 * times["min_ms"] / depth, "megabytes": _peak_memory() - before} | times


def _peak_memory() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # kilobytes, but bytes on a Mac
    return used / 2**20 if sys.platform == "darwin" else used / 2**10


def first_call() -> dict[str, Any]:
    """How much longer the first training step of a process takes than the second."""
    case = Case("highway", 50, 50, 100, torch.get_num_threads(), "train")
    ours, batches = OurCompetitor(our_network(case)), _batches(case)
    TorchCompetitor(naive_network(our_network(case))).train(*next(endless(batches)))  # torch's own start-up
    times = []
    for _ in range(2):
        start = time.perf_counter()
        train, _ = ours.trainer(batches, 1)
        train()
        times.append(time.perf_counter() - start)
    return {"seconds": times[0] - times[1]}


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "compare": compare,
    "peak": matmul_peak,
    "depth": depth,
    "first_call": first_call,
}
