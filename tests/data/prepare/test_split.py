import pytest
import torch
from hypothesis import assume, given, strategies as st
from torch import Tensor

from verydeep.data import DataConfig
from verydeep.data.prepare._split import UnpreparedSplit, add_splits, hold_out
from verydeep.errors import UserError

labels = st.lists(st.integers(0, 4), min_size=20, max_size=80).map(torch.tensor)
shares = st.floats(0.03, 0.8)


def try_hold_out(y: Tensor, wanted: int | float, seed: int) -> tuple[Tensor, Tensor]:
    try:
        return hold_out(y, wanted, seed, "test")
    except UserError:
        assume(False)
        raise AssertionError from None


@given(labels, shares, st.integers(0, 2**40))
def test_splits_are_disjoint_complete_exact_and_in_order(y: Tensor, share: float, seed: int) -> None:
    kept, held = try_hold_out(y, share, seed)
    assert len(held) == round(share * len(y))
    assert sorted([*kept.tolist(), *held.tolist()]) == list(range(len(y)))
    assert kept.tolist() == sorted(kept.tolist())
    assert held.tolist() == sorted(held.tolist())


@given(labels, shares, st.integers(0, 2**40))
def test_every_class_gives_its_share_within_one_and_keeps_a_sample(y: Tensor, share: float, seed: int) -> None:
    kept, held = try_hold_out(y, share, seed)
    for c in set(y.tolist()):
        exact = (y == c).sum().item() * len(held) / len(y)
        assert abs((y[held] == c).sum().item() - exact) <= 1
        assert (y[kept] == c).any()


@given(labels, shares, st.integers(0, 2**40))
def test_the_same_seed_gives_the_same_split(y: Tensor, share: float, seed: int) -> None:
    first, second = try_hold_out(y, share, seed), try_hold_out(y, share, seed)
    assert torch.equal(first[1], second[1])


def test_another_seed_and_another_purpose_give_another_split() -> None:
    y = torch.arange(1000) % 10
    held = {hold_out(y, 0.3, seed, what)[1].numpy().tobytes() for seed in (0, 1) for what in ("test", "validation")}
    assert len(held) == 4


def test_a_split_is_the_same_on_every_machine_and_version() -> None:
    _, held = hold_out(torch.arange(30) % 3, 6, seed=7, what="test")
    assert held.tolist() == [5, 6, 15, 16, 22, 26]


def test_when_classes_outnumber_the_samples_held_out_none_is_favoured() -> None:
    y = torch.arange(500) % 100
    given = torch.zeros(100)
    for seed in range(200):
        given[y[hold_out(y, 10, seed, "validation")[1]]] += 1
    assert given.max() < 45  # 20 are expected of each class
    assert given.min() > 4


def test_a_class_with_a_single_sample_keeps_it_for_training() -> None:
    y = torch.tensor([0] * 50 + [1])
    for seed in range(20):
        assert 50 not in hold_out(y, 0.5, seed, "test")[1]


@pytest.mark.parametrize(
    ("wanted", "message"), [(10, "hold out 10 of 10"), (0.01, "hold out 0 of 10"), (11, "11 of 10")]
)
def test_holding_out_nothing_or_everything_is_refused(wanted: int | float, message: str) -> None:
    with pytest.raises(UserError, match=message):
        hold_out(torch.arange(10) % 2, wanted, 0, "test")


def test_the_error_for_holding_out_too_much_gives_the_largest_number() -> None:
    with pytest.raises(UserError, match=r"cannot hold out 12 of 20 .* at most 10 are possible"):
        hold_out(torch.arange(20) % 10, 12, 0, "test")


def splits(n: int = 200) -> dict[str, UnpreparedSplit]:
    return {"train": UnpreparedSplit(torch.arange(n)[:, None], torch.arange(n) % 4)}


def test_the_test_split_does_not_depend_on_the_validation_split() -> None:
    alone = add_splits(splits(), DataConfig("a.npz"))
    both = add_splits(splits(), DataConfig("a.npz", validation=0.25))
    assert torch.equal(alone["test"].y, both["test"].y)
    assert isinstance(alone["test"].x, Tensor)
    assert isinstance(both["test"].x, Tensor)
    assert torch.equal(alone["test"].x, both["test"].x)
    assert [len(both[name].y) for name in ("train", "valid", "test")] == [120, 40, 40]


def test_splits_that_came_with_the_data_are_not_made_again() -> None:
    given = splits() | {"test": splits(8)["train"], "valid": splits(4)["train"]}
    assert add_splits(given, DataConfig("folder")) == given
    with pytest.raises(UserError, match="already has a test split"):
        add_splits(given, DataConfig("folder", test=0.1))
    with pytest.raises(UserError, match="already has a validation split"):
        add_splits(given, DataConfig("folder", validation=0.1))


def test_the_papers_validation_is_for_the_papers_datasets() -> None:
    with pytest.raises(UserError, match=r"'paper' is for mnist"):
        add_splits(splits(), DataConfig("a.npz", validation="paper"))


def test_training_on_some_samples_leaves_the_other_splits_as_they_are() -> None:
    every, some = (add_splits(splits(), DataConfig("a.npz", validation=0.25, train_samples=n)) for n in (None, 30))
    assert torch.equal(every["test"].y, some["test"].y)
    assert torch.equal(every["valid"].y, some["valid"].y)
    assert len(some["train"].y) == 30
    assert sorted(some["train"].y.bincount().tolist()) == [7, 7, 8, 8]  # every class gives its share
    rows = {int(row) for row in some["train"].x[:, 0]}  # type: ignore[index, union-attr]
    assert rows < {int(row) for row in every["train"].x[:, 0]}  # type: ignore[index, union-attr]
    assert len(add_splits(splits(), DataConfig("a.npz", train_samples=0.5))["train"].y) == 80
    assert len(add_splits(splits(), DataConfig("a.npz", train_samples=160))["train"].y) == 160


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (161, "data.train_samples = 161 would train on 161 of 160 training samples"),
        (3, "data.train_samples = 3: 3 training samples are fewer than the 4 classes"),
        (0.001, "data.train_samples = 0.001 would train on 0 of 160 training samples"),
    ],
)
def test_training_on_too_many_or_too_few_samples_is_refused(wanted: int | float, message: str) -> None:
    with pytest.raises(UserError) as error:
        add_splits(splits(), DataConfig("a.npz", train_samples=wanted))
    assert message in str(error.value)
