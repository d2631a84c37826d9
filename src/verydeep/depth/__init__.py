"""How deep a network must be for your data: search, train, look, verify by training again, and answer.

`how_deep` is the whole of it, and `DepthAnswer` what it returns. `_plan` decides what is trained, `_phases` which
trainings of the study follow from the results so far, `_rule` is the definition of the answer, and `_held_out`,
`_layers_used`, `_others` and `_network` are what is measured when everything is trained.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.depth._answer import DepthAnswer, DepthNetwork, DepthPoint, LayersUsed, OtherModel, TrainingCurve
    from verydeep.depth._plan import DepthPlan
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "DepthAnswer",
    "DepthNetwork",
    "DepthPlan",
    "DepthPoint",
    "LayersUsed",
    "OtherModel",
    "TrainingCurve",
]
