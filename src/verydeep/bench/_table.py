"""The results of the benchmarks in Markdown."""

from typing import Any

from verydeep.bench._tasks import Case

COMPETITORS = ("ours", "eager", "compiled", "jax")
Results = dict[str, dict[str, Any]]


def bench_table(results: Results) -> str:
    """A line per comparison, then depths, the machine's peak and first calls, in Markdown."""
    comparisons = [result for result in results.values() if "case" in result]
    peaks = {result["threads"]: result["gflops"] for name, result in results.items() if name.startswith("peak")}
    lines = ["| case | ours, ms | eager | torch.compile | JAX | of sgemm peak |", "|---|---|---|---|---|---|"]
    lines += [_line(result, peaks) for result in comparisons]
    note = "Our times are minima (medians) over interleaved rounds; the rest are ratios to ours (quartiles of rounds)."
    return "\n".join([note, "", *lines, "", *_depths(results), *_notes(results, peaks), ""])


def _line(result: dict[str, Any], peaks: dict[int, float]) -> str:
    case = Case(**result["case"])
    if "refused" in result:
        return f"| {case.name} | refused: {result['refused']} | | | | |"
    ours = result["times"]["ours"]
    cells = [_ratio(result, name) for name in COMPETITORS[1:]]
    gflops = flops(case) / (1e6 * ours["min_ms"])
    part = f"{gflops / peaks[case.threads]:.0%}" if case.threads in peaks else ""
    return f"| {case.name} | {ours['min_ms']:.3g} ({ours['median_ms']:.3g}) | {' | '.join(cells)} | {part} |"


def _ratio(result: dict[str, Any], name: str) -> str:
    if name not in result["times"]:
        return str(result["missing"].get(name, ""))
    times = result["times"][name]
    low, _, high = times["ratio_quartiles"]
    return f"{times['ratio']:.2f}x ({low:.2f}-{high:.2f})"


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


def _depths(results: Results) -> list[str]:
    rows = sorted((r for n, r in results.items() if n.startswith("depth")), key=lambda r: (r["recompute"], r["depth"]))
    if not rows:
        return []
    head = ["| depth | kept | us per layer | peak memory, MB |", "|---|---|---|---|"]
    kept = {True: "every sqrt(depth)-th layer", False: "all"}
    lines = [
        f"| {r['depth']:,} | {kept[r['recompute']]} | {r['us_per_layer']:.1f} | {r['megabytes']:.0f} |" for r in rows
    ]
    return [*head, *lines, ""]


def _notes(results: Results, peaks: dict[int, float]) -> list[str]:
    lines = [f"- sgemm peak, threads {n}: {gflops:.0f} GFLOP/s" for n, gflops in sorted(peaks.items())]
    for name in ("uncached", "cached"):
        if first := results.get(f"first-call-{name}"):
            lines.append(f"- first call, {name}: {first['seconds']:.2f} s longer than a later one")
    slowest = {
        name: max((r["compile_seconds"].get(name, 0.0) for r in results.values() if "case" in r), default=0.0)
        for name in ("compiled", "jax")
    }
    return lines + [f"- longest compilation, {name}: {seconds:.0f} s" for name, seconds in slowest.items() if seconds]
