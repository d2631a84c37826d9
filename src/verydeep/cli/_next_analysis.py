"""What the page about an analysed network suggests: commands to go on with, and code that removes idle layers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from verydeep.words import plural

if TYPE_CHECKING:
    from verydeep.analysis import Findings, FoundBlocks
    from verydeep.cli.commands._analyze import AnalyzeOptions

NOTHING_TO_CLOSE = "No block of this network can be closed exactly, so this page shows the signal flow only."


def analyze_command(options: AnalyzeOptions, *extra: str, out: str = "") -> str:
    """The command that makes an analysis again, or another one of the same network.

    Args:
        options: The options it was made with.
        *extra: Further arguments.
        out: Another folder for the results.
    """
    network = ("--model", options.model) if options.model is not None else ("--hf", str(options.hf))
    words = ["verydeep", "analyze", *network]
    given = {
        "--text": options.text,
        "--context": options.context,
        "--data": options.data,
        "--split": options.split,
        "--samples": options.samples,
        "--root": options.root,
    }
    words += [word for name, value in given.items() if value is not None for word in (name, str(value))]
    words += ["--tolerance", options.tolerance] if options.tolerance != "0.1%" else []
    if not extra:
        words += ["--level", options.level] if options.level != "layer" else []
        words += ["--blocks", ",".join(options.blocks)] if options.blocks else []
        words += ["--only", ",".join(options.only)] if options.only else []
        words += ["--pairs"] if options.pairs else []
    folder = out or (str(options.out) if options.out is not None else "")
    return shlex.join([*words, *extra, *(["--out", folder] if folder else [])])


def next_steps(options: AnalyzeOptions, blocks: FoundBlocks, found: Findings) -> list[tuple[str, str]]:
    """The commands that follow from an analysis, and what each is for."""
    steps = []
    folder = str(options.out or "analysis")
    post_norm = [each.name for each in blocks.refused if each.reason == "post-norm"]
    if post_norm:
        patterns = ",".join(dict.fromkeys(re.sub(r"(?<=\.)\d+(?=\.|$)", "*", name) for name in post_norm))
        command = analyze_command(options, "--blocks", patterns, out=f"{folder}-named")
        steps.append((command, f"leaves out the {plural(len(post_norm), 'post-norm layer')}, one at a time."))
    if options.hf is not None and blocks and options.level == "layer" and not options.blocks:
        command = analyze_command(options, "--level", "sublayer", out=f"{folder}-parts")
        steps.append((command, "closes attention and feed-forward network of each layer one by one."))
    if blocks and found.pairs is None:
        named = ("--blocks", ",".join(options.blocks)) if options.blocks else ()
        level = ("--level", options.level) if options.level != "layer" else ()
        command = analyze_command(options, *named, *level, "--pairs")
        steps.append((command, "also closes every pair, which shows what can replace what (slow)."))
    return steps


def removal_code(options: AnalyzeOptions, blocks: FoundBlocks, found: Findings, folder: Path) -> str:
    """Lines of Python that remove the idle layers; empty if there are none."""
    if found.usage is None or not found.usage.idle:
        return ""
    usage = repr(str(folder / "usage.npz"))
    whole = options.hf is not None and {block.kind for block in blocks} <= {"residual", "named"}
    names = "load_result, prune" if whole else "find_blocks, load_result, prune"
    if options.hf is not None:
        kind = "AutoModelForMaskedLM" if "Masked" in _architecture(options.hf) else "AutoModelForCausalLM"
        lines = [
            f"from transformers import {kind}",
            f"from verydeep.analysis import {names}",
            "",
            f"model = {kind}.from_pretrained({str(options.hf)!r}, local_files_only=True)",
        ]
    else:
        file, _, function = str(options.model).rpartition(":")
        lines = [
            f"from {Path(file).stem} import {function}  # {file}",
            f"from verydeep.analysis import {names}",
            "",
            f"model = {function}(){'' if options.data is not None else '[0]'}",
        ]
    if whole:
        return "\n".join(
            [*lines, f"smaller = prune(model, load_result({usage}))", 'smaller.save_pretrained("smaller")']
        )
    patterns = f", {list(options.blocks)!r}" if options.blocks else ""
    level = "" if options.level == "layer" else f", level={options.level!r}"
    lines.append(f"blocks = find_blocks(model, x{patterns}{level})  # x: a few samples")
    return "\n".join([*lines, f"smaller = prune(model, load_result({usage}), blocks)"])


def _architecture(folder: Path) -> str:
    from verydeep.files import read_json

    return " ".join(read_json(folder / "config.json").get("architectures") or ())
