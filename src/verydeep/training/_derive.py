"""Runs whose network was not trained from the beginning but made from another run's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from verydeep.files import write_atomic
from verydeep.models import MLPConfig, Network, save_weights
from verydeep.training._config import ModelConfig, TrainConfig
from verydeep.training._run import Run, require_free_folder


def derive_run(parent: Run, path: str | Path, model: Network, status: str, metrics: dict[str, Any]) -> Run:
    """A run's folder for a network made from another run's: it can be evaluated, analysed and exported like any other.

    Args:
        parent: Whose data it remembers.
        path: The new folder, which must not exist or be empty.
        model: The network.
        status: What was done, such as "pruned".
        metrics: What is known of it: loss, accuracy, test_accuracy, ...
    """
    path = Path(path)
    require_free_folder(path)
    own = ["model", *(["dataset"] if "dataset" in parent.facts.get("own", ()) else [])]
    data = parent.path / "data.json"
    if data.exists():
        write_atomic(path / "data.json", data.read_bytes())
    facts = {"own": own, "data": parent.facts.get("data", {})} | origin(parent)
    run = Run.create(path, derived_config(parent.config, model), model, facts)
    save_weights(model, path / "model.safetensors")
    line = {"epoch": 0, "lr": 0.0, **metrics, "seconds": 0.0}
    run.append(line)
    run.log(f"{status} from {parent.path}")
    parameters = sum(p.numel() for p in model.parameters())
    run.finish({"status": status, "epochs": 0, "parameters": parameters, "last": line, "best": None})
    return run


def origin(parent: Run | None) -> dict[str, str]:
    """What a run says of the one its network was made from."""
    return {} if parent is None else {"made_from": str(parent.path)}


def derived_config(config: TrainConfig, model: Network) -> TrainConfig:
    """The configuration of a run, naming the new network's depth where it can."""
    if not isinstance(model.config, MLPConfig):
        return config
    named: ModelConfig = replace(config.model, depth=model.config.depth, gate_bias=model.config.gate_bias)
    return replace(config, model=named)
