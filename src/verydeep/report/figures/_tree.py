"""A clustering as a tree to draw."""

from dataclasses import dataclass

from verydeep.report.figures._axes import Array


@dataclass(frozen=True)
class Tree:
    """A dendrogram.

    Attributes:
        order: The leaves as they stand side by side.
        branches: For each join, four corners of a bracket: (height, place among the leaves).
    """

    order: list[int]
    branches: list[list[tuple[float, float]]]


def make_tree(linkage: Array) -> Tree:
    """Lay out a clustering that scipy's `linkage` describes: row k joins two earlier clusters into number n + k."""
    leaves = len(linkage) + 1
    members = {leaf: [leaf] for leaf in range(leaves)}
    for joined, (left, right, *_) in enumerate(linkage, leaves):
        members[joined] = members[int(left)] + members[int(right)]
    order = members[2 * leaves - 2]
    tops = {leaf: (0.0, float(place)) for place, leaf in enumerate(order)}  # of each cluster: height, place
    branches = []
    for joined, (left, right, height, *_) in enumerate(linkage, leaves):
        (low, first), (high, second) = tops[int(left)], tops[int(right)]
        branches.append([(low, first), (float(height), first), (float(height), second), (high, second)])
        tops[joined] = (float(height), (first + second) / 2)
    return Tree(order, branches)
