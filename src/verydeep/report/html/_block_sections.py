"""What pages about networks with residual blocks say: what a layer is called, and what cannot be closed."""

from collections.abc import Sequence
from typing import Any

from verydeep.analysis import Block, RefusedBlock, refusal_lines
from verydeep.report.html._tables import Table


def layer_noun(blocks: Sequence[Block]) -> str:
    """What a page calls the layers that were closed."""
    kinds = {block.kind for block in blocks}
    if kinds == {"highway"}:
        return "highway layer"
    return {frozenset({"residual"}): "residual block", frozenset({"branch"}): "sublayer"}.get(frozenset(kinds), "layer")


def refused_section(refused: Sequence[RefusedBlock]) -> dict[str, Any]:
    """Collect what the page says about blocks that cannot be closed."""
    rows: Table = (["name", "reason"], [[each.name, each.message] for each in refused])
    return {"refused": rows, "refused_lines": refusal_lines(refused)}
