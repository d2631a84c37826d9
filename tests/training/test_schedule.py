import math

from hypothesis import given, strategies as st

from verydeep.training import ScheduleConfig
from verydeep.training.step._schedule import schedule_factor

epochs = st.integers(0, 400)
factors = st.floats(0.01, 1.0)
shares = st.floats(0.0, 1.0)
warmups = st.floats(0.001, 0.9)


@given(epochs, shares)
def test_constant_never_changes(epoch: int, progress: float) -> None:
    assert schedule_factor(ScheduleConfig("constant"), epoch, progress) == 1


@given(epochs, factors)
def test_exponential_multiplies_once_after_every_epoch(epoch: int, factor: float) -> None:
    slow = 1.0
    for _ in range(epoch):
        slow *= factor
    assert math.isclose(
        schedule_factor(ScheduleConfig("exponential", factor), epoch, 0.0), slow, rel_tol=1e-9, abs_tol=1e-300
    )


@given(epochs, factors, st.lists(st.integers(1, 400), min_size=1, unique=True))
def test_multistep_multiplies_once_after_every_milestone(epoch: int, factor: float, milestones: list[int]) -> None:
    slow = 1.0
    for completed in range(1, epoch + 1):
        if completed in milestones:
            slow *= factor
    schedule = ScheduleConfig("multistep", factor, tuple(sorted(milestones)))
    assert math.isclose(schedule_factor(schedule, epoch, 0.0), slow, rel_tol=1e-9)


@given(shares, warmups)
def test_one_cycle_is_a_triangle(progress: float, warmup: float) -> None:
    """The lower of two straight lines: one rises from 0 to 1 in the warm-up, one falls to 0 at the end."""
    slow = min(progress / warmup, (1 - progress) / (1 - warmup))
    assert math.isclose(schedule_factor(ScheduleConfig("one-cycle", warmup=warmup), 0, progress), slow, abs_tol=1e-9)


@given(shares, warmups)
def test_cosine_rises_straight_then_falls_along_half_a_cosine(progress: float, warmup: float) -> None:
    fall = (progress - warmup) / (1 - warmup)
    slow = progress / warmup if fall < 0 else math.cos(math.pi * fall / 2) ** 2
    assert math.isclose(schedule_factor(ScheduleConfig("cosine", warmup=warmup), 0, progress), slow, abs_tol=1e-9)


@given(st.sampled_from(["one-cycle", "cosine"]))
def test_without_a_warmup_the_rate_starts_in_full_and_ends_at_nothing(name: str) -> None:
    schedule = ScheduleConfig(name)  # type: ignore[arg-type]
    assert schedule_factor(schedule, 0, 0.0) == 1
    assert schedule_factor(schedule, 0, 1.0) == 0


@given(st.sampled_from(["constant", "exponential", "multistep", "one-cycle", "cosine"]), epochs, shares, factors)
def test_no_schedule_ever_leaves_zero_to_one(name: str, epoch: int, progress: float, factor: float) -> None:
    schedule = ScheduleConfig(name, factor, (3, 5), 0.1)  # type: ignore[arg-type]
    assert 0 <= schedule_factor(schedule, epoch, progress) <= 1


@given(st.sampled_from(["constant", "exponential", "multistep"]), st.floats(0.01, 1.0))
def test_the_first_epoch_may_have_a_rate_of_its_own(name: str, first: float) -> None:
    schedule = ScheduleConfig(name, 0.5, (3,), first_epoch=first)  # type: ignore[arg-type]
    usual = ScheduleConfig(name, 0.5, (3,))  # type: ignore[arg-type]
    assert schedule_factor(schedule, 0, 0.0) == first * schedule_factor(usual, 0, 0.0)
    assert all(schedule_factor(schedule, epoch, 0.1) == schedule_factor(usual, epoch, 0.1) for epoch in (1, 2, 3, 4))
