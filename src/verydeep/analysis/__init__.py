"""What happens inside a trained network: gates, class routing, lesions, depth usage, signal flow and pruning.

Every analysis is a function that takes any model with highway layers and data, and returns a small result: arrays and
numbers that `save_result` writes to disk and `verydeep.report` draws. The model is never changed, and the process
keeps its settings.

`_blocks` finds the layers that can be closed and runs a model with some of them closed; `_activity` observes gates and
outputs during such a pass, and `_replay` reuses one pass for the next; each of the other files is one analysis.
"""

from typing import TYPE_CHECKING

from verydeep.lazy import lazy_imports

if TYPE_CHECKING:
    from verydeep.analysis._data import (
        Data as Data,
        Progress as Progress,
        sample_inputs as sample_inputs,
        some_samples as some_samples,
    )
    from verydeep.analysis._display import samples_of as samples_of, split_name as split_name, the_split as the_split
    from verydeep.analysis._evaluate import evaluate_model
    from verydeep.analysis._saving import Findings, load_findings, load_result, save_findings, save_result
    from verydeep.analysis.activity._activity_results import (
        NOISE as NOISE,
        ClassRouting,
        GateStatistics,
        SignalFlow,
        is_significant as is_significant,
    )
    from verydeep.analysis.activity._gates import gate_statistics
    from verydeep.analysis.activity._observations import (
        IDLE as IDLE,
        Observations as Observations,
        idle_alone as idle_alone,
        observations as observations,
    )
    from verydeep.analysis.activity._routing import class_routing
    from verydeep.analysis.activity._signal_flow import signal_flow
    from verydeep.analysis.blocks._block import Block
    from verydeep.analysis.blocks._find_blocks import Blocks as Blocks, closable_blocks as closable_blocks, find_blocks
    from verydeep.analysis.blocks._refused_blocks import (
        FoundBlocks,
        NoBlocksError as NoBlocksError,
        RefusedBlock,
        refusal_lines as refusal_lines,
    )
    from verydeep.analysis.lesions._lesion_results import (
        LesionStudy,
        PairLesion,
        PruneReport,
        Score,
        tolerance_text as tolerance_text,
    )
    from verydeep.analysis.lesions._lesions import lesion_study, pair_lesions
    from verydeep.analysis.lesions._paired import most_closed as most_closed
    from verydeep.analysis.lesions._random_changes import random_lesions, reorder_study
    from verydeep.analysis.lesions._random_results import RandomChanges
    from verydeep.analysis.lesions._usage import depth_usage, greedy_lesions
    from verydeep.analysis.lesions._usage_results import DepthUsage, GreedyLesion
    from verydeep.analysis.removal._prune import (
        closable_layers as closable_layers,
        highway_layers,
        prune,
        prune_report,
        removable,
    )
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "Block",
    "ClassRouting",
    "DepthUsage",
    "Findings",
    "FoundBlocks",
    "GateStatistics",
    "GreedyLesion",
    "LesionStudy",
    "PairLesion",
    "PruneReport",
    "RandomChanges",
    "RefusedBlock",
    "Score",
    "SignalFlow",
    "class_routing",
    "depth_usage",
    "evaluate_model",
    "find_blocks",
    "gate_statistics",
    "greedy_lesions",
    "highway_layers",
    "lesion_study",
    "load_findings",
    "load_result",
    "pair_lesions",
    "prune",
    "prune_report",
    "random_lesions",
    "removable",
    "reorder_study",
    "save_findings",
    "save_result",
    "signal_flow",
]
