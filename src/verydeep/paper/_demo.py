"""The demo: a plain and a highway network of 50 layers, trained side by side and compared."""

import math
from dataclasses import replace
from pathlib import Path

from verydeep.data import DataConfig, load_dataset
from verydeep.errors import UserError
from verydeep.training import EpochMetrics, ModelConfig, OptimConfig, ScheduleConfig, TrainConfig

_STUCK = 0.95  # a network whose loss is above this fraction of a blind guess's has not learnt


def demo_configs(data: str) -> dict[str, TrainConfig]:
    """Configure each network with settings that suit it: those of configs/plain50-mnist.toml and highway50-mnist.toml.

    Args:
        data: `mnist`, or `digits`, which is small and therefore needs more epochs.
    """
    shared = TrainConfig(
        data=DataConfig(data),
        epochs=60 if data == "digits" else 5,
        evaluate_train=True,
        threads=1,
        device="cpu",
    )
    plain, highway = (ScheduleConfig("exponential", 0.97 if data == "digits" else factor) for factor in (0.9, 0.8))
    return {
        "plain": replace(
            shared,
            model=ModelConfig("plain-mlp", depth=50),
            optim=OptimConfig(lr=0.002),
            schedule=plain,
        ),
        "highway": replace(
            shared,
            model=ModelConfig("highway-mlp", depth=50, gate_bias=-3.0),
            optim=OptimConfig(lr=0.2),
            schedule=highway,
        ),
    }


def demo_data(root: Path | None) -> tuple[str, str]:
    """Choose the demo's dataset, and give the reason if it is not MNIST."""
    try:
        load_dataset("mnist", root)
    except UserError as error:
        first, *rest = str(error).splitlines()
        reasons = [line.removeprefix("  - ") for line in rest if line.startswith("  - ")]
        return "digits", f"{first} {'; '.join(reasons)}".strip()
    return "mnist", ""


def verdict(plain: EpochMetrics, highway: EpochMetrics, classes: int = 10) -> str:
    """Compare the two networks in one sentence, from the metrics of their last epochs."""
    losses = {"plain": plain.train_loss, "highway": highway.train_loss}
    guess = math.log(classes)
    states = {name: _state(loss, guess) for name, loss in losses.items()}
    if "learns" not in states.values():
        return f"Neither network learnt: the plain one {states['plain']}, the highway one {states['highway']}."
    for name, other in (("plain", "highway"), ("highway", "plain")):
        if states[name] != "learns":
            return f"The {name} network {states[name]}; the {other} network learns."
    better, worse = sorted(losses, key=lambda name: losses[name] or 0.0)
    factor = (losses[worse] or 0.0) / max(losses[better] or 0.0, 1e-12)
    if factor < 1.2:
        return "Both networks learn, and neither is clearly ahead."
    return f"Both networks learn, but the {worse} one's loss is still {factor:.1f} times that of the {better} one."


def _state(loss: float | None, guess: float) -> str:
    if loss is None or not math.isfinite(loss):
        return "diverged"
    return f"is stuck at a blind guess (loss {guess:.2f})" if loss > _STUCK * guess else "learns"
