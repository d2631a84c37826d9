"""scikit-learn's own checks of estimators."""

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks  # type: ignore[import-untyped]

from verydeep.sklearn import HighwayClassifier, HighwayRegressor

SMALL: dict[str, Any] = {"depth": 3, "width": 16, "epochs": 12, "batch_size": 16, "metric": "loss"}
ESTIMATORS = [HighwayClassifier(lr=0.3, **SMALL), HighwayRegressor(lr=0.1, **SMALL)]


def expected_failures(_estimator: object) -> dict[str, str]:
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "repeated samples are in other batches than weighted ones; see test_weights.py"
        )
    }


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)  # type: ignore[untyped-decorator]
def test_scikit_learns_check(estimator: Any, check: Any) -> None:
    check(estimator)
