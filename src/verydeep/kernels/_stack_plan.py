"""Which samples of a batch go to which thread, and what is kept of them."""

from functools import lru_cache
from typing import NamedTuple

_CHUNK = 104  # samples whose activations of one layer fit the fastest cache, at the paper's widths


class Chunk(NamedTuple):
    """Some of the samples."""

    first: int
    samples: int
    vectors: int
    lanes: int  # of a vector
    start: int  # of what is kept of them, in numbers

    @property
    def lead(self) -> int:
        """Samples with padding."""
        return self.vectors * self.lanes


class Plan(NamedTuple):
    """How a batch is divided, and what is kept of it for the backward pass."""

    threads: tuple[tuple[Chunk, ...], ...]
    stride: int  # numbers a sample and layer
    kept: int  # numbers
    longest: int  # samples of a chunk, with padding


def kept_by_sample(width: int, maps: int, layers: int, segment: int) -> tuple[int, int]:
    """Numbers a sample: of one layer (x, and z of highway layers, since a plain z is the next x), and kept in all."""
    layer = width if maps == 1 else width * (1 + maps)
    if segment == 0:
        return layer, 0
    return layer, layers * layer + width if segment == 1 else -(-layers // segment) * width


@lru_cache(maxsize=256)
def make_plan(batch: int, width: int, maps: int, layers: int, segment: int, threads: int) -> Plan:
    """Chunks of whole registers, the same number for every thread."""
    from verydeep.kernels._ir import LANES

    vectors = -(-batch // LANES)
    threads = max(1, min(threads, vectors))
    rounds = -(-vectors // (threads * (_CHUNK // LANES)))
    stride, samples = kept_by_sample(width, maps, layers, segment)
    chunks, done, count = [], 0, threads * rounds
    for i in range(count):
        upto = vectors * (i + 1) // count
        size = min(upto * LANES, batch) - done * LANES
        chunks.append(Chunk(done * LANES, size, upto - done, LANES, done * LANES * samples))
        done = upto
    groups = tuple(tuple(chunks[i : i + rounds]) for i in range(0, count, rounds))
    return Plan(groups, stride, vectors * LANES * samples, max(chunk.lead for chunk in chunks))
