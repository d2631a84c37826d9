"""The network that is handed over: trained at the depth of the answer, or the deep one pruned to it and fine-tuned.

Once the held-out samples have answered, they are there to learn from: a network that was trained at its depth is
trained again with them.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from verydeep.analysis import DepthUsage, evaluate_model, prune
from verydeep.data import Dataset
from verydeep.depth._answer import DepthNetwork
from verydeep.depth._held_out import measure
from verydeep.depth._others import score_with_interval
from verydeep.depth._problem import Candidate
from verydeep.training import Run, ScheduleConfig, TrainConfig, derived_config, make_objective, train

NETWORK, PRUNED, TRAINED = "network", "pruned", "trained"
_TUNING = 4  # fine-tuning takes a fourth of the epochs, at a tenth of the learning rate


def recommend(
    folder: Path,
    candidate: Candidate,
    trained: Run,
    deep: Run | None,
    usage: DepthUsage | None,
    dataset: Dataset,
    whole: Dataset,
) -> tuple[DepthNetwork, Dataset]:
    """Save the better of two networks of the same depth as a run, and test it once.

    Args:
        folder: The study's folder.
        candidate: The kind and depth of the answer.
        trained: A run that was trained at that depth.
        deep: The run of the deep highway network with the same seed; None if it diverged.
        usage: The order in which its layers can be closed.
        dataset: The data as the seed sees it.
        whole: The same data with nothing held out but validation and test samples.

    Returns:
        The network, and the data it has learned from: `dataset` or `whole`.
    """
    assert dataset.valid is not None
    objective = make_objective(trained.config, dataset)
    chosen, made = trained, "trained"
    loss, rival = evaluate_model(trained.model, dataset.valid, objective=objective).loss, None
    pruned = None if deep is None or usage is None else _prune(folder, trained, deep, usage, dataset)
    if pruned is not None:
        rival = evaluate_model(pruned.model, dataset.valid, objective=objective).loss
        if rival < loss:
            chosen, made, loss, rival = pruned, "pruned", rival, loss
    if made == "trained" and (again := _train_again(folder, trained, whole)) is not None:
        chosen, dataset = again, whole
    _copy(chosen.path, folder / NETWORK)
    run = Run.load(folder / NETWORK)
    tested = measure(run.model.eval(), dataset.test, make_objective(run.config, dataset))
    score, low, high = score_with_interval(tested.scores)
    network = DepthNetwork(
        path=NETWORK,
        made="pruned" if made == "pruned" else "trained",
        kind="highway" if made == "pruned" else candidate.kind,
        depth=candidate.depth,
        parameters=sum(parameter.numel() for parameter in run.model.parameters()),
        rows=len(dataset.train),
        valid_loss=loss,
        rival_loss=rival,
        test_score=score,
        test_low=low,
        test_high=high,
        test_samples=len(dataset.test),
    )
    return network, dataset


def _train_again(folder: Path, trained: Run, whole: Dataset) -> Run | None:
    """The same network, trained with the held-out samples, too; None if it diverged before any weights were saved."""
    config = replace(trained.config, data=replace(trained.config.data, folds=None, fold=0))
    run = train(config, folder / TRAINED, resume=True, loaded=whole, progress=False)
    return run if (run.path / "model.safetensors").exists() else None


def _prune(folder: Path, trained: Run, deep: Run, usage: DepthUsage, dataset: Dataset) -> Run | None:
    """The deep network with as many layers as the trained one, fine-tuned; None if it cannot have so few."""
    total = len(usage.greedy.layers)
    wanted = total - ((deep.config.model.depth or 0) - (trained.config.model.depth or 0))
    if not 0 <= wanted < total:  # it is linear, or already as deep
        return None
    smaller = prune(deep.model, [usage.greedy.layers[layer] for layer in usage.greedy.order[: total - wanted]])
    config = derived_config(_tuning(deep.config), smaller)
    run = train(config, folder / PRUNED, resume=True, model=smaller, loaded=dataset, made_from=deep, progress=False)
    return run if (run.path / "model.safetensors").exists() else None


def _tuning(config: TrainConfig) -> TrainConfig:
    epochs = max(1, config.epochs // _TUNING)
    optim = replace(config.optim, lr=config.optim.lr / 10)
    return replace(config, optim=optim, schedule=ScheduleConfig("cosine"), epochs=epochs, patience=0)


def _copy(run: Path, to: Path) -> None:
    """Copy a run under a temporary name and rename it, so that a partly copied one is never visible."""
    partial = to.with_name(f".{to.name}.partial")
    for old in (partial, to):
        if old.exists():
            shutil.rmtree(old)
    shutil.copytree(run, partial, ignore=shutil.ignore_patterns("checkpoint", "lock"))
    partial.replace(to)
