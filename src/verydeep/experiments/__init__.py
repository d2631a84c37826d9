"""The paper's comparisons as short programs on top of everything else."""

from verydeep.experiments._demo import demo_configs, demo_data, verdict
from verydeep.experiments._pair import Epoch, Step, train_side_by_side

__all__ = ["Epoch", "Step", "demo_configs", "demo_data", "train_side_by_side", "verdict"]
