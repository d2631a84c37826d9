"""The benchmarks compare equal networks, keep their results, and say what is missing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from verydeep.bench import (
    BenchTask,
    Case,
    _measurements,
    _run,
    bench_cases,
    bench_page,
    bench_table,
    bench_tasks,
    load_results,
    run_bench,
)
from verydeep.bench._competitors import CompiledCompetitor, naive_network, our_network
from verydeep.bench._page import flops
from verydeep.bench._tasks import BASE
from verydeep.bench._timing import measure, summary
from verydeep.cli import main
from verydeep.errors import UserError
from verydeep.report import plot_bench

TINY = [
    Case("highway", 3, 8, 4, 1, "train"),
    Case("plain", 3, 8, 4, 1, "infer"),
    Case("conv", 2, 8, 4, 1, "train", 6),
]
NAMED = Case("named", 0, 0, 2, 1, "infer", network="highway-mnist-16")
tiny = pytest.mark.parametrize("case", TINY, ids=lambda case: case.name)


def task(case: Case, **settings: Any) -> dict[str, Any]:
    return {"case": case.to_dict(), "seconds": 0.0, "rounds": 2, "compile": False} | settings


@tiny
def test_the_naive_network_computes_the_same(case: Case) -> None:
    ours = our_network(case)
    x = torch.rand(4, *case.input_shape)
    torch.testing.assert_close(naive_network(ours)(x), ours(x), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@tiny
def test_every_competitor_trains_from_equal_weights_to_equal_losses(case: Case, tmp_path: Path) -> None:
    (done,) = run_bench([BenchTask("tiny", 1, {"task": "compare"} | task(case))], tmp_path)
    result = load_results([done], tmp_path)["tiny"]
    names = {"ours", "eager"} | ({"jax"} if find_spec("jax") else set())
    names |= {"onnx"} if case.mode == "infer" and find_spec("onnxruntime") else set()
    assert set(result["times"]) == set(result["losses"]) == names
    assert result["missing"]["compiled"] == "not measured"
    for losses in result["losses"].values():
        assert losses == pytest.approx(result["losses"]["eager"], rel=1e-4)
        assert len(set(losses)) == (4 if case.mode == "train" else 1), "the weights have not moved"


def test_named_networks_are_compared_where_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verydeep.bench._onnx_runtime.find_spec", lambda name: None)
    result = _measurements.compare(**task(NAMED))
    assert set(result["times"]) == {"ours", "eager"}
    assert result["missing"]["jax"] in ("not written in JAX", "jax is not installed")
    assert result["missing"]["onnx"] == "onnxruntime is not installed"
    table = bench_table({NAMED.name: result, "peak-t1": {"threads": 1, "gflops": 80.0}})
    assert "infer-highway-mnist-16-b2-t1" in table
    assert "onnxruntime is not installed" in table


def test_competitors_that_compute_something_else_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_measurements, "find_spec", lambda name: None)
    losses = iter([[1.0, 2.0], [1.0, 2.1]])
    monkeypatch.setattr(_measurements, "_losses", lambda *_: next(losses))
    result = _measurements.compare(**task(TINY[0]))
    assert result["refused"].startswith("ours: the loss differs from eager PyTorch's")
    assert "times" not in result
    assert result["missing"]["jax"] == "jax is not installed"
    assert "refused" in bench_table({"tiny": result})


@pytest.mark.slow
def test_without_a_compiler_torch_compile_is_reported_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_measurements, "find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    result = _measurements.compare(**task(TINY[0], compile=True))
    assert result["missing"]["compiled"] == "torch.compile needs a C++ compiler"
    deep = _measurements.compare(**task(replace(TINY[0], depth=101), compile=True))
    assert "beyond depth 100" in deep["missing"]["compiled"]


def test_every_network_is_compiled_however_many_there_were_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr(torch.compiler, "reset", lambda: done.append("reset"))

    def compile_(model: nn.Module) -> nn.Module:
        done.append("compile")
        return model

    monkeypatch.setattr(torch, "compile", compile_)
    x, y = torch.rand(4, *TINY[1].input_shape), torch.zeros(4, dtype=torch.int64)
    for _ in range(2):
        CompiledCompetitor(naive_network(our_network(TINY[1])), x, y, "infer")
    assert done == ["reset", "compile"] * 2


def test_slow_comparisons_end_after_three_rounds() -> None:
    assert measure({"slow": (lambda: sleep(0.06), 1)}, 0.01, 9)["slow"]["rounds"] == 3
    assert measure({"quick": (lambda: None, 1)}, 0.0, 2)["quick"]["rounds"] == 3


@pytest.mark.slow
def test_what_has_been_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [BenchTask(f"peak-{n}", 1, {"task": "peak", "seconds": 0.0}) for n in range(3)]
    assert list(run_bench(tasks, tmp_path)) == tasks
    before = (tmp_path / "peak-0.json").read_text()
    changed = json.loads((tmp_path / "peak-1.json").read_text())
    changed["environment"]["torch"] = "0.1"
    (tmp_path / "peak-1.json").write_text(json.dumps(changed))
    tasks[2] = replace(tasks[2], message={"task": "peak", "seconds": 0.001})  # other settings than before
    measured: list[BenchTask] = []
    groups = _run._groups

    def spy(pending: list[BenchTask]) -> Any:
        measured.extend(pending)
        return groups(pending)

    monkeypatch.setattr(_run, "_groups", spy)
    assert {done.name for done in run_bench(tasks, tmp_path)} == {"peak-0", "peak-1", "peak-2"}
    assert [one.name for one in measured] == ["peak-1", "peak-2"]
    assert (tmp_path / "peak-0.json").read_text() == before


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "peak-t1.json").write_text("{")
    with pytest.raises(UserError, match=r"peak-t1\.json is not JSON"):
        list(run_bench([BenchTask("peak-t1", 1, {"task": "peak", "seconds": 0.0})], tmp_path))


def test_a_first_call_with_a_cache_finds_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it is the only thing measured: a process before it fills the cache."""
    started: list[str] = []

    @contextmanager
    def process(task: BenchTask, cache: Path) -> Iterator[Any]:
        started.append(task.name)
        yield lambda _message: {"seconds": len(started)}

    monkeypatch.setattr(_run, "_process", process)
    uncached, cached = (task for task in bench_tasks(quick=True) if task.name.startswith("first-call"))
    list(run_bench([cached, uncached], tmp_path))
    assert started == ["first-call-cached", "first-call-cached", "first-call-uncached"]
    assert load_results([cached], tmp_path)["first-call-cached"]["seconds"] == 2


@pytest.mark.slow
def test_a_measuring_process_that_dies_says_why(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="KeyError: 'nothing'"):
        list(run_bench([BenchTask("bad", 1, {"task": "nothing"})], tmp_path))
    assert not list(tmp_path.iterdir())


def test_the_whole_bench_has_every_size() -> None:
    cases = bench_cases(quick=False)
    dense = [case for case in cases if case.kind in ("highway", "plain")]
    single = {(case.network, case.threads) for case in cases if case.kind == "named" and case.batch == 1}
    assert single == {(name, n) for name in ("highway-mnist-16", "highway-a", "highway-b") for n in (1, 2)}
    assert {case.depth for case in dense} == {10, 20, 50, 100, 1000}
    assert {(case.kind, case.width) for case in dense} == {("highway", 50), ("plain", 71), ("highway", 128)}
    assert {case.batch for case in dense} == {1, 100, 500}
    conv = {(case.width, case.side) for case in cases if case.kind == "conv"}
    assert conv == {(16, 28), (32, 28), (32, 32), (64, 32), (32, 16), (64, 16)}
    assert {(case.threads, case.mode) for case in cases} == {(n, mode) for n in (1, 2) for mode in ("train", "infer")}
    names = [one.name for one in bench_tasks(quick=False)]
    assert len(set(names)) == len(names)
    assert {"depth-10", "depth-1000", "depth-10000-recompute", "first-call-uncached", "first-call-cached"} <= set(names)


def test_competitors_take_turns() -> None:
    order: list[str] = []
    found = measure({name: (lambda name=name: order.append(name), 1) for name in "ab"}, 0.0, 3)  # type: ignore[misc]
    assert {name: result["rounds"] for name, result in found.items()} == {"a": 3, "b": 3}
    assert order[-1] == "b"  # the last round began with a


def test_ratios_are_those_of_the_minima_with_quartiles_of_rounds() -> None:
    found = summary([2.0, 4.0, 6.0], [1.0, 1.0, 2.0])
    assert found["ratio"] == 2.0
    assert found["ratio_quartiles"] == [2.5, 3.0, 3.5]


@tiny
def test_flops_are_counted_as_torch_counts_them(case: Case) -> None:
    model, x = naive_network(our_network(case)), torch.randn(case.batch, *case.input_shape)
    counter = FlopCounterMode(display=False)
    with counter:
        y = model(x)
        if case.mode == "train":
            y.sum().backward()
    assert flops(case) == counter.get_total_flops()


@pytest.mark.slow
def test_the_command_writes_json_a_table_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--quick", "--only", "peak-t1", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"bench.json", "bench.md", "bench.png", "cases"}
    assert "GFLOP/s" in capsys.readouterr().out
    measured = (tmp_path / "cases" / "peak-t1.json").read_text()
    (tmp_path / "bench.md").unlink()
    assert main(["bench", "--quick", "--no-measure", "--out", str(tmp_path)]) == 0
    assert "GFLOP/s" in (tmp_path / "bench.md").read_text()
    assert [path.read_text() for path in (tmp_path / "cases").iterdir()] == [measured]
    capsys.readouterr()
    assert main(["bench", "--no-measure", "--out", str(tmp_path / "none")]) == 2
    assert "has no measurements yet" in capsys.readouterr().err
    assert main(["bench", "--only", "xyz", "--out", str(tmp_path)]) == 2
    assert "'xyz'" in capsys.readouterr().err


def test_the_picture_and_the_table_show_every_comparison(tmp_path: Path) -> None:
    one = {"min_ms": 1.0, "median_ms": 1.2, "rounds": 3, "ratio": 1.0, "ratio_quartiles": [1.0, 1.0, 1.0]}
    times = {"ours": one, "eager": one | {"ratio": 5.25, "ratio_quartiles": [5.0, 5.2, 5.5]}}
    result = {"case": BASE.to_dict(), "times": times, "missing": {"jax": "jax is not installed"}, "compile_seconds": {}}
    depth = {"depth": 50, "recompute": False, "us_per_layer": 10.0, "megabytes": 20.0}
    results: dict[str, Any] = {BASE.name: result, "depth-50": depth, "peak-t1": {"threads": 1, "gflops": 80.0}}
    table = bench_table(results)
    assert "5.25x (5.00-5.50)" in table
    assert "jax is not installed" in table
    two = BASE.to_dict() | {"threads": 2, "mode": "infer"}
    conv = BASE.to_dict() | {"kind": "conv", "depth": 5, "width": 16, "side": 28, "batch": 10}
    results |= {"two": result | {"case": two}, "conv": result | {"case": conv}}
    figure = plot_bench(results, tmp_path / "bench.png")
    assert (tmp_path / "bench.png").stat().st_size > 0
    training, inference = figure.subfigs[0].axes
    assert [label.get_text() for label in training.get_yticklabels()] == [
        "50 layers",
        "5 convolutions of 16, 28×28, batch 10",
    ]
    symbols = [[line for line in axes.lines if line.get_marker() == "o"] for axes in (training, inference)]
    assert [[float(np.ravel(line.get_xdata())[0]) for line in lines] for lines in symbols] == [[5.25, 5.25], [5.25]]
    assert "hollow: 1 thread, filled: 2" in figure.subfigs[0].legends[0].get_title().get_text()


def test_the_page_is_what_the_measurements_say() -> None:
    """If it is not: verydeep bench --no-measure."""
    folder = Path(__file__).parents[2] / "results" / "bench"
    assert (folder / "bench.md").read_text() == bench_page(json.loads((folder / "bench.json").read_text()))
