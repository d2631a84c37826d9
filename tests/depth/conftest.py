import pytest

from verydeep.depth import DepthAnswer, DepthNetwork, DepthPoint, LayersUsed, OtherModel


@pytest.fixture
def answer() -> DepthAnswer:
    points = tuple(DepthPoint("highway", depth, 0.1, 0.97) for depth in (0, 1, 2, 4, 8))
    return DepthAnswer(
        "made up",
        2,
        "highway",
        (1, 4),
        4,
        "highway",
        points,
        used=LayersUsed(8, 3, (2, 3, 4), (2, 4)),
        others=(OtherModel("gradient boosting", 0.979),),
        network=DepthNetwork("network", "trained", "highway", 2, test_score=0.972),
    )
