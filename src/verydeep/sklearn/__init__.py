"""Highway networks as scikit-learn estimators, for pipelines, cross-validation and grid searches.

`HighwayClassifier` and `HighwayRegressor` take arrays or DataFrames, choose what is not given as `verydeep train` does,
train in memory without leaving files, and keep the network: `lesions` and `prune` say which of its layers matter.
`_samples` turns what a user passes into tensors, `_estimator` is what both have in common, and `_weighted` is the
objective of weighted samples.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.sklearn._classifier import HighwayClassifier
    from verydeep.sklearn._regressor import HighwayRegressor
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = ["HighwayClassifier", "HighwayRegressor"]
