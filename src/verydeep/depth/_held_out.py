"""Every trained network on the samples that its seed held out, one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from verydeep.data import Batches, Dataset, Split
from verydeep.depth._phases import Finalist
from verydeep.depth._problem import Candidate, Problem
from verydeep.depth._rule import Choice, choose_depth, paired_errors
from verydeep.errors import UserError
from verydeep.objectives import Objective, evaluate_batches
from verydeep.studies import Study
from verydeep.training import Run, make_objective

Array = NDArray[np.float64]
_BATCH = 500
_LEARNED = 2.0  # standard errors by which a network must be better than a blind guess


@dataclass(frozen=True)
class Measured:
    """The results of one network on each of some samples.

    Attributes:
        losses: The loss of each sample.
        scores: The contribution of each sample to the score, of which the score is the mean.
    """

    losses: Array
    scores: Array

    @property
    def loss(self) -> float:
        """The mean loss."""
        return float(self.losses.mean())

    @property
    def score(self) -> float:
        """The accuracy, or R2."""
        return float(self.scores.mean())


def measure(outputs_of: object, split: Split, objective: Objective) -> Measured:
    """Measure a network, or any function from samples to outputs, sample by sample."""
    losses: list[Tensor] = []
    errors: list[Tensor] = []

    def keep(outputs: Tensor, y: Tensor) -> None:
        each = objective.losses(outputs, y)
        assert each is not None  # of every task that data can have
        losses.append(each.double())
        errors.append(objective.errors(outputs, y))

    batches = Batches(split, _BATCH, seed=0, shuffle=False).epoch(0)
    totals = evaluate_batches(outputs_of, batches, objective, observe=keep)  # type: ignore[arg-type]
    wrong = torch.cat(errors) @ objective.error_weights(totals.values, totals.samples)
    finite = torch.cat(losses).nan_to_num(nan=torch.inf).clamp(max=1e30)
    return Measured(finite.numpy(), 1 - wrong.nan_to_num(nan=torch.inf).clamp(max=1e30).numpy())


def blind_outputs(dataset: Dataset) -> Tensor:
    """The outputs that predict the same for every sample: the frequency of each class or label, or the mean."""
    y, task = dataset.train.y, dataset.task
    if task.kind == "regression":
        return torch.zeros(task.outputs)
    if task.kind == "multilabel":
        return torch.logit(y.float().mean(0), eps=1e-6)
    counts = torch.bincount(y, minlength=task.outputs).double()
    return (counts / counts.sum()).clamp(min=1e-12).log().float()


class HeldOut:
    """Measures the networks of a study on the samples that their seeds held out, each once.

    Args:
        study: The study.
        problem: The data and the family of networks.
        seeds: The seeds.
    """

    def __init__(self, study: Study, problem: Problem, seeds: Sequence[int]) -> None:
        self.study, self.problem, self.seeds = study, problem, tuple(seeds)
        self._measured: dict[tuple[str, int], Measured] = {}
        self._guesses: dict[int, Measured] = {}

    def dataset(self, seed: int) -> Dataset:
        """The data as a seed sees it."""
        return self.problem.fold(seed)

    def run(self, finalist: Finalist, seed: int) -> Run | None:
        """The run of a seed; None if it diverged before any weights were saved."""
        name = f"{finalist.group}/seed-{seed}"
        path = self.study.fetch_run(name) or self.study.run_path(name)
        if not (path / "config.json").exists():
            raise UserError(
                f"{name} was trained on another machine and is not in {self.study.folder}; "
                "repeat this with a folder that all machines share, or with --artifacts"
            )
        return Run.load(path) if (path / "model.safetensors").exists() else None

    def update(self, finalists: Sequence[Finalist]) -> None:
        """Measure what has not been measured yet; each part of the data is loaded once."""
        for seed in self.seeds:
            new = [each for each in finalists if (each.group, seed) not in self._measured]
            if not new and seed in self._guesses:
                continue
            dataset = self.dataset(seed)
            assert dataset.held_out is not None
            objective = make_objective(self.problem.defaults, dataset)
            guess = blind_outputs(dataset)
            blind = measure(lambda x, guess=guess: guess.expand(len(x), -1), dataset.held_out, objective)
            self._guesses[seed] = blind
            for finalist in new:
                run = self.run(finalist, seed)
                found = blind if run is None else measure(run.model.eval(), dataset.held_out, objective)
                self._measured[finalist.group, seed] = found

    def of(self, finalist: Finalist) -> list[Measured]:
        """The results of a network with each seed."""
        return [self._measured[finalist.group, seed] for seed in self.seeds]

    @property
    def guesses(self) -> list[Measured]:
        """The results of a blind guess on what each seed held out."""
        return [self._guesses[seed] for seed in self.seeds]

    def best_settings(self, finalists: Sequence[Finalist]) -> list[Finalist]:
        """One finalist for every kind and depth: the one with the lowest mean validation loss over the seeds.

        The samples that are held out have no part in this, nor in early stopping: a choice by them would favour
        networks whose loss varies more.
        """
        groups: dict[str, list[float]] = {}
        for record in self.study.records([each.group for each in finalists]):
            groups.setdefault(record.group, []).append(math.inf if record.value is None else record.value)
        best: dict[Candidate, Finalist] = {}
        for each in finalists:
            known = best.get(each.candidate)
            if known is None or fmean(groups[each.group]) < fmean(groups[known.group]):
                best[each.candidate] = each
        return list(best.values())

    def losses(self, finalists: Sequence[Finalist]) -> list[Array]:
        """For each seed, the loss of every sample with every network, `(sample, network)`."""
        every = [self.of(each) for each in finalists]
        return [np.stack([each[number].losses for each in every], 1) for number in range(len(self.seeds))]

    def scores(self, finalists: Sequence[Finalist]) -> list[Array]:
        """Likewise the contributions to the score."""
        every = [self.of(each) for each in finalists]
        return [np.stack([each[number].scores for each in every], 1) for number in range(len(self.seeds))]

    def choose(self, finalists: Sequence[Finalist]) -> Choice:
        """Which of the networks is enough."""
        return choose_depth([each.candidate.depth for each in finalists], self.losses(finalists))

    def has_learned(self, finalist: Finalist) -> bool:
        """Whether a network is clearly better than a blind guess."""
        pairs = zip(self.of(finalist), self.guesses, strict=True)
        losses = [np.stack([network.losses, guess.losses], 1) for network, guess in pairs]
        loss, blind = np.mean([each.mean(0) for each in losses], 0)
        return bool(blind - loss > _LEARNED * paired_errors(losses)[0, 1])
