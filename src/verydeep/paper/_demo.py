"""The demo: a plain and a highway network of 50 layers, trained side by side and compared."""

import math
from pathlib import Path

from verydeep.config import config_folder
from verydeep.data import load_dataset
from verydeep.errors import UserError
from verydeep.training import EpochMetrics, TrainConfig, read_config

_STUCK = 0.95  # a network whose loss is above this fraction of log(classes) has not learned


def demo_configs(data: str) -> dict[str, TrainConfig]:
    """The configurations of the demo's two networks, `configs/demo/`.

    Args:
        data: `mnist` or `digits`.

    Example:
        >>> from verydeep.paper import demo_configs
        >>> [config.model.name for config in demo_configs("digits").values()]
        ['plain-mlp', 'highway-mlp']
    """
    folder = config_folder() / "demo"
    return {name: read_config(folder / f"{name}-{data}.toml") for name in ("plain", "highway")}


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
        return f"Neither network learned: the plain one {states['plain']}, the highway one {states['highway']}."
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
    return f"is stuck at chance level (loss {guess:.2f})" if loss > _STUCK * guess else "learns"
