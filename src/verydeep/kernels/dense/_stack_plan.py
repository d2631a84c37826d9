"""How a batch is divided among threads, and how much is kept of it."""

from functools import lru_cache
from typing import NamedTuple

_CHUNK = 512  # samples that share the weights of a layer while these are in a cache


class Chunk(NamedTuple):
    """A range of samples that go through all layers together."""

    first: int
    samples: int
    vectors: int
    lanes: int  # numbers per vector
    start: int  # where the kept activations of these samples begin, in numbers

    @property
    def padded_samples(self) -> int:
        """The number of samples, including padding."""
        return self.vectors * self.lanes


class Plan(NamedTuple):
    """How a batch is divided, and how much is kept of it for the backward pass."""

    threads: tuple[tuple[Chunk, ...], ...]
    stride: int  # numbers per sample and layer
    kept: int  # numbers in total
    longest: int  # samples of the longest chunk, including padding


_RESIDUAL = "residual-"  # begins the names of the formulas of residual layers


def activation_of(formula_name: str) -> str:
    """The activation of a formula."""
    return formula_name.removeprefix(_RESIDUAL)


def parts_of_layer(affine_maps: int, formula_name: str) -> int:
    """How many matrices a layer keeps.

    A highway or residual layer has x and z; a plain layer has x only, because its z is the x of the next layer.
    """
    plain = affine_maps == 1 and not formula_name.startswith(_RESIDUAL)
    return 1 if plain else 1 + affine_maps


def kept_by_sample(width: int, parts: int, layers: int, segment: int) -> tuple[int, int]:
    """Numbers per sample: of one layer with this many matrices, and kept in total."""
    layer = width * parts
    if segment == 0:
        return layer, 0
    return layer, layers * layer + width if segment == 1 else -(-layers // segment) * width


@lru_cache(maxsize=256)
def make_plan(batch: int, width: int, parts: int, layers: int, segment: int, threads: int) -> Plan:
    """Divide a batch into chunks of whole registers, the same number for every thread."""
    from verydeep.kernels.ir._processor import LANES

    vectors = -(-batch // LANES)
    threads = max(1, min(threads, vectors))
    rounds = -(-vectors // (threads * (_CHUNK // LANES)))
    stride, samples = kept_by_sample(width, parts, layers, segment)
    chunks, done, count = [], 0, threads * rounds
    for i in range(count):
        upto = vectors * (i + 1) // count
        size = min(upto * LANES, batch) - done * LANES
        chunks.append(Chunk(done * LANES, size, upto - done, LANES, done * LANES * samples))
        done = upto
    groups = tuple(tuple(chunks[i : i + rounds]) for i in range(0, count, rounds))
    return Plan(groups, stride, vectors * LANES * samples, max(chunk.padded_samples for chunk in chunks))
