"""The results of the benchmarks in Markdown."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verydeep.bench._tasks import Case
from verydeep.redact import redact
from verydeep.report import render_markdown

_TEMPLATES = Path(__file__).parent / "templates"
Results = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class BenchRow:
    """A comparison, as text: our time, the ratios of the others to it, and our fraction of the machine's peak."""

    comparison: str
    ours: str
    eager: str = ""
    compiled: str = ""
    jax: str = ""
    onnx: str = ""
    peak: str = ""


@dataclass(frozen=True)
class DepthRow:
    """Time and memory of training at one depth."""

    depth: int
    recompute: bool
    microseconds: float
    megabytes: float


@dataclass(frozen=True)
class Machine:
    """Where, when and with which versions something was measured."""

    date: str
    command: str
    processor: str
    cores: int
    system: str
    python: str
    torch: str
    verydeep: str
    git: str | None


def bench_page(results: Results) -> str:
    """Write results as a page, in Markdown.

    Args:
        results: What `load_results` returns; at least one result.

    Returns:
        The page, with machine and versions of the latest result.

    Example:
        >>> from verydeep.bench import bench_page, bench_tasks, load_results
        >>> if results := load_results(bench_tasks(quick=True), "bench"):
        ...     print(bench_page(results))
    """
    return render_markdown("bench.md", _TEMPLATES, machine=_machine(results), **_values(results))


def bench_table(results: Results) -> str:
    """The tables of the page alone, in Markdown.

    Args:
        results: What `load_results` returns.
    """
    return render_markdown("bench-table.md", _TEMPLATES, **_values(results))


def _values(results: Results) -> dict[str, object]:
    comparisons = [result for result in results.values() if "case" in result]
    peaks = {result["threads"]: result["gflops"] for name, result in results.items() if name.startswith("peak")}
    calls = {name: results[f"first-call-{name}"]["seconds"] for name in _CACHES if f"first-call-{name}" in results}
    longest = {
        title: max((result["compile_seconds"].get(name, 0.0) for result in comparisons), default=0.0)
        for name, title in _COMPILERS.items()
    }
    return {
        "rows": [_row(result, peaks) for result in comparisons],
        "depths": _depths(results),
        "peaks": dict(sorted(peaks.items())),
        "first_calls": calls,
        "compilation": {title: seconds for title, seconds in longest.items() if seconds},
    }


_CACHES = ("uncached", "cached")
_COMPILERS = {"compiled": "torch.compile", "jax": "JAX"}


def _row(result: dict[str, Any], peaks: dict[int, float]) -> BenchRow:
    case = Case(**result["case"])
    if "refused" in result:
        return BenchRow(case.name, f"refused: {result['refused']}")
    ours = result["times"]["ours"]
    gflops = flops(case) / (1e6 * ours["min_ms"])
    has_peak = case.threads in peaks and case.kind != "named"
    return BenchRow(
        case.name,
        f"{ours['min_ms']:.3g} ({ours['median_ms']:.3g})",
        _ratio(result, "eager"),
        _ratio(result, "compiled"),
        _ratio(result, "jax"),
        _ratio(result, "onnx"),
        f"{gflops / peaks[case.threads]:.0%}" if has_peak else "",
    )


def _ratio(result: dict[str, Any], name: str) -> str:
    if name not in result["times"]:
        return str(result["missing"].get(name, ""))
    times = result["times"][name]
    low, _, high = times["ratio_quartiles"]
    return f"{times['ratio']:.2f}x ({low:.2f}-{high:.2f})"


def _depths(results: Results) -> list[DepthRow]:
    measured = (result for name, result in results.items() if name.startswith("depth"))
    rows = [DepthRow(each["depth"], each["recompute"], each["us_per_layer"], each["megabytes"]) for each in measured]
    return sorted(rows, key=lambda row: (row.recompute, row.depth))


def _machine(results: Results) -> Machine:
    """Machine and versions of the latest result."""
    last = max(results.values(), key=lambda result: str(result["date"]))
    environment = last["environment"]
    names = ("processor", "cores", "system", "python", "torch", "verydeep", "git")
    values = {name: environment[name] for name in names}
    return Machine(date=last["date"][:10], command=redact(*environment["command"].split(" ")), **values)


def flops(case: Case) -> float:
    """Floating-point operations of the matrix products of one step, with convolutions computed directly.

    A backward pass has two products for each one of the forward pass, except that the first layer needs no gradient
    with respect to the images.
    """
    maps = 1 if case.kind == "plain" else 2
    if case.kind == "conv":
        area = case.side**2
        first, others = area * 9 * 3 * case.width, case.depth * area * 9 * maps * case.width**2 + 10 * case.width
    else:
        first, others = 784 * case.width, (case.depth - 1) * maps * case.width**2 + 10 * case.width
    return 2.0 * case.batch * (2 * first + 3 * others if case.mode == "train" else first + others)
