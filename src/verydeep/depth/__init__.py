"""How deep a network must be for your data: search, train, look, verify by training again, and answer.

`how_deep` is the whole of it, and `DepthAnswer` what it returns. `_plan` decides what is trained within a budget
(`_cost`), `_phases` which trainings of the study follow from the results so far, and `_carry_out` trains them. `_rule`
is the definition of the answer; `_held_out`, `_layers_used`, `_others` and `_network` are what is measured at the end.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.depth._answer import DepthAnswer, DepthNetwork, DepthPoint, LayersUsed, OtherModel, TrainingCurve
    from verydeep.depth._carry_out import DepthInterrupted
    from verydeep.depth._how_deep import how_deep
    from verydeep.depth._plan import DepthPlan
    from verydeep.depth._progress import DepthProgress, make_depth_progress as make_depth_progress
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "DepthAnswer",
    "DepthInterrupted",
    "DepthNetwork",
    "DepthPlan",
    "DepthPoint",
    "DepthProgress",
    "LayersUsed",
    "OtherModel",
    "TrainingCurve",
    "how_deep",
]
