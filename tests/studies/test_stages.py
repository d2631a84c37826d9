"""Stages: which trainings of a group are trained further."""

from dataclasses import dataclass

from verydeep.studies import Stages
from verydeep.studies._halving import stage_members

STAGES = Stages(epochs=(1, 3), trainings=(4, 2))


@dataclass
class Curve:
    """A training that was trained for as many epochs as it has values."""

    values: list[float]

    def has_reached(self, epoch: int) -> bool:
        return len(self.values) >= epoch

    def best_until(self, epoch: int) -> float | None:
        return min(self.values[:epoch])


def test_the_best_of_a_complete_stage_enter_the_next() -> None:
    curves = {number: Curve([value]) for number, value in enumerate((0.5, 0.1, 0.9, 0.3))}
    assert stage_members(STAGES, 0, curves) == [0, 1, 2, 3]
    assert stage_members(STAGES, 1, curves) == [1, 3]
    curves[2] = Curve([])
    assert stage_members(STAGES, 1, curves) is None


def test_rounded_values_name_the_same_trainings() -> None:
    """Recorded results have five digits, and on another processor the last digits differ."""
    values = (2.30101, 2.301012, 2.3010149, 2.301008)
    exact = {number: Curve([value]) for number, value in enumerate(values)}
    rounded = {number: Curve([float(f"{value:.5g}")]) for number, value in enumerate(values)}
    assert stage_members(STAGES, 1, exact) == stage_members(STAGES, 1, rounded) == [0, 1]
