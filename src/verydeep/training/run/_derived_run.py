"""Runs whose network was made from another run's network instead of being trained from the beginning."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from verydeep.files import write_atomic
from verydeep.lock import exclusive_lock
from verydeep.models import MLPConfig, Network, save_weights
from verydeep.training._config import ModelConfig, TrainConfig
from verydeep.training.run._metrics import EpochMetrics, RunSummary
from verydeep.training.run._run import Run, require_free_folder


def derive_run(
    parent: Run,
    path: str | Path,
    model: Network,
    status: str,
    metrics: EpochMetrics,
    write_more: Callable[[Path], None] = lambda _: None,
) -> Run:
    """Create a run for a network made from another run's; it can be evaluated, analysed and exported like any other.

    Args:
        parent: The run that the network was made from; the new run shares its data.
        path: The folder, which must be new or empty.
        model: The network.
        status: What was done, such as "pruned".
        metrics: What was measured, as epoch 0.
        write_more: Writes further files to the folder.
    """
    path = Path(path)
    require_free_folder(path)
    with exclusive_lock(path / "lock", f"{path}: another process is writing this run", wait=False):
        require_free_folder(path)  # which another process may have filled meanwhile
        return _write(parent, path, model, status, metrics, write_more)


def _write(
    parent: Run,
    path: Path,
    model: Network,
    status: str,
    metrics: EpochMetrics,
    write_more: Callable[[Path], None],
) -> Run:
    user_supplied = ["model", *(["dataset"] if "dataset" in parent.user_supplied else [])]
    data = parent.path / "data.json"
    if data.exists():
        write_atomic(path / "data.json", data.read_bytes())
    for log in ("metrics.jsonl", "events.log"):  # of an attempt that was killed
        (path / log).unlink(missing_ok=True)
    run = Run(path, derived_config(parent.config, model))
    run.write_environment()
    save_weights(model, path / "model.safetensors")
    run.append(metrics)
    run.log(f"{status} from {parent.path}")
    parameters = sum(p.numel() for p in model.parameters())
    run.finish(RunSummary(status, epochs=0, last=metrics, best=None, parameters=parameters))
    write_more(path)
    metadata = {"own": user_supplied, "data": parent.metadata.get("data", {})} | parent_metadata(parent)
    metadata |= {key: parent.metadata[key] for key in ("measure", "lower_is_better") if key in parent.metadata}
    # Last, because it makes the folder a run: killed before, the same call starts again.
    return Run.create(path, run.config, model, metadata)


def parent_metadata(parent: Run | None) -> dict[str, str]:
    """What config.json says about the run that a network was made from."""
    return {} if parent is None else {"made_from": str(parent.path)}


def derived_config(config: TrainConfig, model: Network) -> TrainConfig:
    """A run's configuration with the depth and gate bias of the new network, where the network has them."""
    config = replace(config, init=None)  # the new network has its weights already
    if not isinstance(model.config, MLPConfig):
        return config
    named: ModelConfig = replace(config.model, depth=model.config.depth, gate_bias=model.config.gate_bias)
    return replace(config, model=named)
