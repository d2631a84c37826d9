"""The definition of the answer, and its standard errors and interval."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from verydeep.depth._rule import bootstrap_means, bootstrap_seeds, choose_depth, paired_errors

DEPTHS = (0, 1, 2, 4)


def made_up(
    means: tuple[float, ...],
    seeds: int = 3,
    samples: int = 300,
    noise: float = 0.1,
    between: float = 0.0,
    seed: int = 0,
) -> list[np.ndarray]:
    """Losses whose differences between networks are much smaller than those between samples."""
    random = np.random.default_rng(seed)
    hardness = [random.exponential(1.0, (samples, 1)) for _ in range(seeds)]
    return [
        hard + np.array(means) + random.normal(0, noise, (samples, len(means))) + random.normal(0, between, len(means))
        for hard in hardness
    ]


def test_the_smallest_depth_that_is_as_good_as_the_best_is_chosen() -> None:
    choice = choose_depth(DEPTHS, made_up((0.5, 0.3, 0.1, 0.1)))
    assert DEPTHS[choice.chosen] == 2
    assert choice.interval is not None
    assert choice.interval[0] == 2


def test_a_difference_within_one_standard_error_does_not_count() -> None:
    losses = [np.array([[1.0, 1.0], [2.0, 1.0], [1.0, 2.0], [2.1, 2.0]])]  # mean difference 0.025, standard error 0.42
    assert choose_depth((1, 2), losses).chosen == 0
    losses = [np.array([[1.1, 1.0], [2.1, 2.0], [1.1, 1.0], [2.1, 2.0]])]  # the same difference for every sample
    assert choose_depth((1, 2), losses).chosen == 1


def test_equal_networks_give_the_smallest_depth() -> None:
    losses = [np.ones((10, 4)) for _ in range(3)]
    choice = choose_depth(DEPTHS, losses)
    assert (choice.chosen, choice.best, choice.interval) == (0, 0, (0, 0))
    assert not choice.excess.any()


def test_equally_good_networks_seldom_give_more_than_the_smallest_depth() -> None:
    """Compared with the lowest of 14 mean losses, depth 0 would be within one standard error only four times of ten."""
    depths = (0, 1, *(depth for depth in (2, 4, 8, 16, 32, 50) for _ in range(2)))
    losses = [made_up((0.1,) * 14, seeds=2, samples=100, between=0.01, seed=seed) for seed in range(400)]
    found = [choose_depth(depths, each) for each in losses]
    assert np.mean([depths[choice.chosen] == 0 for choice in found]) > 0.7
    assert np.mean([choice.excess[0] for choice in found]) == pytest.approx(0.0, abs=0.003)


@given(arrays(np.float64, (2, 3, 5), elements=st.floats(0, 10, width=16)))
def test_the_network_with_the_lowest_mean_loss_is_always_enough(values: np.ndarray) -> None:
    depths = (0, 1, 2, 2, 4)
    choice = choose_depth(depths, list(values))
    assert values.mean((0, 1))[choice.best] == values.mean((0, 1)).min()
    assert choice.excess[choice.best] <= 1e-12
    assert depths[choice.chosen] <= depths[choice.best]


def test_the_best_is_chosen_by_other_seeds() -> None:
    # By the first seed, the second network is best, and by the second seed, the third.
    losses = [
        np.array([[1.0, 0.0, 0.9]]),
        np.array([[1.0, 2.0, 0.9]]),
    ]
    choice = choose_depth((0, 1, 2), losses)
    assert choice.excess == pytest.approx([(0.1 - 1.0) / 2, (-0.9 + 0.0) / 2, (0.0 - 1.1) / 2])


def test_a_seed_that_is_drawn_twice_is_not_compared_by_its_own_losses() -> None:
    means, drawn = bootstrap_seeds([np.full((2, 1), number) for number in range(3)])
    assert (means[..., 0] == drawn).all()
    assert means.shape == (1000, 3, 1)


def test_of_two_networks_of_the_chosen_depth_the_better_one_is_named() -> None:
    losses = made_up((0.5, 0.11, 0.1, 0.1), noise=0.01)
    assert choose_depth((0, 2, 2, 4), losses).chosen == 2


def test_there_is_no_interval_with_fewer_than_three_seeds() -> None:
    assert choose_depth(DEPTHS, made_up((0.3, 0.2, 0.1, 0.1), seeds=2)).interval is None
    assert choose_depth(DEPTHS, made_up((0.3, 0.2, 0.1, 0.1), seeds=3)).interval is not None


def test_the_interval_contains_the_answer_and_grows_with_the_noise() -> None:
    widths = []
    for noise in (0.01, 1.0):
        choice = choose_depth(DEPTHS, made_up((0.14, 0.12, 0.1, 0.1), noise=noise))
        assert choice.interval is not None
        assert choice.interval[0] <= DEPTHS[choice.chosen] <= choice.interval[1]
        widths.append(choice.interval[1] - choice.interval[0])
    assert widths[0] < widths[1]


def test_the_interval_covers_what_other_samples_and_seeds_answer() -> None:
    means = (0.6, 0.3, 0.1, 0.1)
    found = [choose_depth(DEPTHS, made_up(means, samples=100, between=0.02, seed=seed)) for seed in range(20)]
    intervals = [choice.interval or (0, 0) for choice in found]
    covered = [low <= DEPTHS[other.chosen] <= high for low, high in intervals for other in found]
    assert np.mean(covered) > 0.8
    assert np.mean([low <= 2 <= high for low, high in intervals]) > 0.9


def test_seeds_that_disagree_make_the_standard_error_larger() -> None:
    calm, wild = (paired_errors(made_up((0.0, 0.0), between=between))[0, 1] for between in (0.0, 0.5))
    assert wild > 5 * calm


@given(arrays(np.float64, (2, 7, 3), elements=st.floats(-10, 10, width=16)))
def test_standard_errors_are_those_of_the_paired_differences(values: np.ndarray) -> None:
    losses = list(values)
    errors = paired_errors(losses)
    for i in range(3):
        for j in range(3):
            differences = values[:, :, i] - values[:, :, j]
            over_samples = (differences.var(1, ddof=1) / 7).sum() / 4
            over_seeds = differences.mean(1).var(ddof=1) / 2
            assert errors[i, j] == pytest.approx(np.sqrt(max(over_samples, over_seeds)), abs=1e-6)


def test_draws_have_the_mean_and_the_spread_of_seeds_and_samples() -> None:
    random = np.random.default_rng(0)
    values = [random.normal(number, 1.0, (400, 1)) for number in range(3)]
    draws = bootstrap_means(values)
    assert draws.shape == (1000, 1)
    assert draws.mean() == pytest.approx(1.0, abs=0.1)
    spread = np.sqrt(np.var([0, 1, 2]) / 3 + 1 / 1200)
    assert draws.std() == pytest.approx(spread, rel=0.15)
    assert (bootstrap_means(values) == draws).all()


def test_very_many_samples_are_drawn_in_blocks() -> None:
    values = [np.random.default_rng(0).normal(size=(50_000, 1))]
    draws = bootstrap_means(values)
    assert draws.std() == pytest.approx(1 / np.sqrt(50_000), rel=0.2)


def test_the_draws_of_a_constant_are_exact() -> None:
    assert (bootstrap_means([np.ones((37, 1))] * 3) == 1.0).all()
