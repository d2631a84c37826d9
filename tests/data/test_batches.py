from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from verydeep.data import ArrayPreparation, Augment, Batches, Split
from verydeep.errors import UserError

sizes = st.tuples(st.integers(1, 60), st.integers(1, 12), st.integers(0, 2**40), st.integers(0, 5))


def numbered(n: int) -> Split:
    return Split(torch.arange(n, dtype=torch.float32)[:, None], torch.arange(n))


def pictures(n: int) -> Split:
    return Split(torch.randn(n, 3, 6, 6, generator=torch.Generator().manual_seed(n)), torch.arange(n))


def all_equal(a: list[tuple[Tensor, Tensor]], b: list[tuple[Tensor, Tensor]]) -> bool:
    pairs = zip(a, b, strict=True)
    return all(torch.equal(xa, xb) and torch.equal(ya, yb) for (xa, ya), (xb, yb) in pairs)


@given(sizes, st.booleans())
def test_every_sample_occurs_once_per_epoch(size: tuple[int, int, int, int], shuffle: bool) -> None:
    n, batch, seed, epoch = size
    batches = Batches(numbered(n), batch, seed=seed, shuffle=shuffle)
    seen = list(batches.epoch(epoch))
    assert len(seen) == len(batches)
    assert sorted(torch.cat([y for _, y in seen]).tolist()) == list(range(n))
    assert all(len(y) == batch for _, y in seen[:-1])
    assert all(torch.equal(x[:, 0].long(), y) for x, y in seen)


@given(sizes, st.integers(0, 60))
def test_resuming_gives_the_rest_of_the_epoch_exactly(size: tuple[int, int, int, int], start: int) -> None:
    n, batch, seed, epoch = size
    make = {"seed": seed, "augment": Augment(pad=2, mirror=True)}
    whole = list(Batches(pictures(n), batch, **make).epoch(epoch))  # type: ignore[arg-type]
    resumed = list(Batches(pictures(n), batch, **make).epoch(epoch, start=min(start, len(whole))))  # type: ignore[arg-type]
    assert all_equal(resumed, whole[start:])


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 7), st.integers(0, 5), st.integers(0, 2**40))
def test_ranks_share_each_batch_without_overlap(world: int, each: int, full: int, extra: int, seed: int) -> None:
    batch = world * each
    n = full * batch + (world + extra if world + extra < batch else batch)
    options: dict[str, Any] = {"seed": seed, "augment": Augment(pad=1, mirror=True)}
    alone = list(Batches(pictures(n), batch, **options).epoch(1))
    ranks = [list(Batches(pictures(n), batch, rank=r, world_size=world, **options).epoch(1)) for r in range(world)]
    together = [(torch.cat([x for x, _ in b]), torch.cat([y for _, y in b])) for b in zip(*ranks, strict=True)]
    assert all_equal(together, alone)
    assert all(len(y) == each for rank in ranks for _, y in rank[: n // batch])


@given(sizes)
def test_drop_last_drops_only_the_incomplete_batch(size: tuple[int, int, int, int]) -> None:
    n, batch, seed, epoch = size
    n += batch
    full = list(Batches(numbered(n), batch, seed=seed, drop_last=True).epoch(epoch))
    assert all_equal(full, list(Batches(numbered(n), batch, seed=seed).epoch(epoch))[: n // batch])


def order(seed: int, epoch: int, **options: Any) -> list[int]:
    return torch.cat([y for _, y in Batches(numbered(100), 10, seed=seed, **options).epoch(epoch)]).tolist()


def test_the_order_depends_only_on_seed_and_epoch() -> None:
    assert order(1, 2) == order(1, 2) == order(1, 2, drop_last=True)
    torch.manual_seed(99)
    torch.rand(5)
    assert order(1, 2) == order(1, 2)
    assert len({tuple(order(seed, epoch)) for seed in range(5) for epoch in range(5)}) == 25


def test_without_shuffling_the_order_is_that_of_the_split() -> None:
    assert order(1, 2, shuffle=False) == list(range(100))


def test_the_global_generator_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    list(Batches(pictures(10), 3, seed=0, augment=Augment(1, True)).epoch(0))
    assert torch.equal(before, torch.random.get_rng_state())


def test_augmentation_differs_between_epochs_and_samples() -> None:
    image = torch.arange(36.0).view(1, 1, 6, 6)
    split = Split(image.expand(50, 1, 6, 6), torch.zeros(50, dtype=torch.int64))
    batches = Batches(split, 50, seed=0, augment=Augment(pad=6, mirror=True))
    (first, _), (second, _) = next(batches.epoch(0)), next(batches.epoch(1))
    assert not torch.equal(first, second)
    assert len({x.numpy().tobytes() for x in first}) > 30


def test_earlier_batches_do_not_change_later() -> None:
    kept = list(Batches(pictures(12), 4, seed=0).epoch(0))
    copies = [(x.clone(), y.clone()) for x, y in kept]
    list(Batches(pictures(12), 4, seed=1).epoch(0))
    assert all_equal(kept, copies)


def test_a_split_that_is_prepared_lazily_is_prepared_in_each_batch() -> None:
    x = torch.randint(0, 256, (9, 1, 4, 4), dtype=torch.uint8)
    lazy = Split(x, torch.arange(9), ArrayPreparation((1, 4, 4), full=256.0))
    eager = Split(x.float() / 256, torch.arange(9))
    options: dict[str, Any] = {"seed": 3, "augment": Augment(1, True)}
    assert all_equal(list(Batches(lazy, 4, **options).epoch(0)), list(Batches(eager, 4, **options).epoch(0)))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_sees_the_same_batches() -> None:
    split = pictures(20)
    there = Split(split.x.cuda(), split.y.cuda())
    options: dict[str, Any] = {"seed": 3, "augment": Augment(1, True)}
    batches = [(x.cpu(), y.cpu()) for x, y in Batches(there, 6, **options).epoch(0)]
    assert all_equal(batches, list(Batches(split, 6, **options).epoch(0)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size 0"),
        ({"batch_size": 5, "world_size": 2}, "cannot be shared by 2"),
        ({"batch_size": 4, "rank": 2, "world_size": 2}, "rank 2 is not one of 2"),
        ({"batch_size": 9, "world_size": 3}, "last batch has 1 samples for 3 processes; choose another"),
        ({"batch_size": 11, "drop_last": True}, "10 samples do not fill one batch of 11"),
        ({"batch_size": 2, "seed": -1}, "seed must be 0 or more"),
        ({"batch_size": 2, "augment": Augment(1)}, "only images can be augmented"),
    ],
)
def test_impossible_settings_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Batches(numbered(10), **({"seed": 0} | options))


def test_a_pad_larger_than_the_images_is_refused() -> None:
    with pytest.raises(UserError, match="pad 7 is larger than"):
        Batches(pictures(4), 2, seed=0, augment=Augment(pad=7))
