"""The problem: the data, how parts of it are held out, and which networks it is given to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch

from verydeep.data import DataConfig, Dataset, load_dataset
from verydeep.errors import UserError, unknown
from verydeep.models import conv_stages
from verydeep.nn import suggest_gate_bias
from verydeep.studies import Choices, Range, Space
from verydeep.training import ModelConfig, OptimConfig, ScheduleConfig, TrainConfig, choose_settings, make_objective
from verydeep.words import plural

Kind = Literal["highway", "plain"]
Network = Literal["mlp", "conv"]
FOLDS = 5
_WIDTHS: dict[str, tuple[int, ...]] = {"mlp": (24, 48, 96), "conv": (16,)}
_FASTEST = (50, 5)  # the highest learning rate over the default one: a linear model without hidden layers takes more
_SAMPLED = 1000  # samples of a split that a digest is made of if not all are in memory
_FEWEST_ROWS = 30  # training samples, below which there would be too few for validation


@dataclass(frozen=True)
class Candidate:
    """A kind of network and a depth.

    Attributes:
        kind: `highway` or `plain`; below two layers both are the same, which counts as `highway`.
        depth: The number of hidden layers, or of layers per stage; 0 is the linear model.
    """

    kind: Kind
    depth: int

    @property
    def name(self) -> str:
        """Its name in the study: highway-8."""
        return f"{self.kind}-{self.depth}"

    def describe(self, unit: str = "layers") -> str:
        """What it is, for people: a highway network of 8 layers."""
        if self.depth == 0:
            return "a linear model"
        layers = plural(self.depth, "layer") + unit.removeprefix("layers")
        return f"a network of {layers}" if self.depth == 1 else f"a {self.kind} network of {layers}"


def candidates_at(depth: int) -> list[Candidate]:
    """The networks of a depth."""
    kinds: tuple[Kind, ...] = ("highway",) if depth < 2 else ("highway", "plain")
    return [Candidate(kind, depth) for kind in kinds]


class Problem:
    """Data and a family of networks.

    Args:
        data: The data.
        root: Folder of the known datasets.
        network: `mlp` or `conv`; by default, `conv` for images of your own.
        settings: Settings of all trainings, such as the loss of a regression or class weights.
        width: The width of all networks; by default, it is searched.

    Attributes:
        data: The data, with the parts that are held out.
        dataset: The data as the first seed sees it.
        network: `mlp` or `conv`.
        width: The width of all networks; None if it is searched.
    """

    def __init__(
        self,
        data: DataConfig,
        root: str | Path | None,
        network: Network | None,
        settings: TrainConfig | None = None,
        width: int | None = None,
    ) -> None:
        self.root, self.settings, self.width = root, settings or TrainConfig(), width
        validated = data.valid_path is not None or bool(data.validation)
        self.data = replace(data, folds=FOLDS, validation=data.validation if validated else "auto")
        self.dataset = self._load()
        shape = tuple(self.dataset.train.x.shape[1:])
        is_image = len(shape) == 3
        own = not _is_known(data)
        if network not in (None, *_WIDTHS):
            raise unknown("network", network, _WIDTHS)
        self.network: Network = network or ("conv" if is_image and own else "mlp")
        if self.network == "conv" and not is_image:
            raise UserError(f"{data.source}: a convolutional network needs images, not samples of shape {shape}")
        self._check_samples()
        make_objective(self.defaults, self.dataset)  # the loss and the weights of classes must suit the targets

    def _load(self) -> Dataset:
        try:
            return load_dataset(self.data, self.root)
        except UserError as error:
            if "data.folds" in str(error):  # which the user has not given
                raise self._too_few("too few training samples") from error
            raise

    def _too_few(self, found: str) -> UserError:
        needed = f"at least {_FEWEST_ROWS} are needed, of which parts are held out in turn"
        return UserError(f"{self.data.source}: has {found}; {needed}")

    def _check_samples(self) -> None:
        """Refuse data from which nothing can be learned; a single class or a constant target is noticed before."""
        dataset, source = self.dataset, self.data.source
        rows = sum(len(split) for split in (dataset.train, dataset.valid, dataset.held_out) if split is not None)
        if rows < _FEWEST_ROWS:
            raise self._too_few(f"only {plural(rows, 'training sample')}")
        x = dataset.train.x
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return
        if bool((x == x[:1]).all()):
            raise UserError(
                f"{source}: all features are constant in the training samples; there is nothing to learn from"
            )

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the samples; of more samples than fit into memory, some that are spread evenly."""
        digest = hashlib.sha256()
        for split in (self.dataset.train, self.dataset.valid, self.dataset.held_out, self.dataset.test):
            if split is not None:
                whole = isinstance(split.x, torch.Tensor)
                x = split.x if whole else split.x[:: max(1, len(split) // _SAMPLED)]
                for part in (x, split.y):
                    values = torch.as_tensor(part).contiguous()
                    digest.update(f"{values.dtype} {tuple(values.shape)} {len(split)}".encode())
                    digest.update(values.reshape(-1).view(torch.uint8).numpy().data)
        return digest.hexdigest()[:32]

    def unmeasured_classes(self, seeds: Sequence[int]) -> dict[str, int]:
        """The classes of which no sample is held out with any of these seeds, and how many training samples they have.

        Args:
            seeds: The seeds.
        """
        task, dataset, folds = self.dataset.task, self.dataset, self.data.folds or 1
        assert dataset.held_out is not None
        if task.kind != "classification" or {seed % folds for seed in seeds} >= set(range(folds)):
            return {}
        y = torch.cat([dataset.train.y, dataset.held_out.y])
        counts = torch.bincount(y, minlength=task.outputs)
        rare = [number for number in range(task.outputs) if counts[number] < 2 * folds]
        if not rare:
            return {}
        held_out = torch.cat([part.y for seed in seeds if (part := self.fold(seed).held_out) is not None])
        return {str(task.names[number]): int(counts[number]) for number in rare if not bool((held_out == number).any())}

    @cached_property
    def farthest_target(self) -> float:
        """How many standard deviations the most extreme number to predict is from the mean; 0 for classes."""
        splits = (self.dataset.train, self.dataset.valid, self.dataset.held_out)
        if self.dataset.task.kind != "regression":
            return 0.0
        y = torch.cat([split.y.double() for split in splits if split is not None])
        return float(((y - y.mean(0)) / y.std(0).clamp(min=1e-300)).abs().max())

    def fold(self, seed: int) -> Dataset:
        """The data as a seed sees it."""
        folds = self.data.folds
        if folds is None or seed % folds == self.data.fold:
            return self.dataset
        return load_dataset(replace(self.data, fold=seed % folds), self.root)

    @cached_property
    def whole(self) -> Dataset:
        """The data with nothing held out but validation and test samples."""
        return load_dataset(replace(self.data, folds=None), self.root)

    @property
    def unit(self) -> str:
        """What depth counts."""
        return "layers" if self.network == "mlp" else "layers per stage"

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths that are tried."""
        return _WIDTHS[self.network] if self.width is None else (self.width,)

    @cached_property
    def defaults(self) -> TrainConfig:
        """The settings that suit the data; every search starts around them."""
        name = "highway-conv" if self.network == "conv" else "highway-mlp"
        optimiser: Literal["muon", "sgd"] = "muon" if self.network == "conv" else "sgd"
        config = replace(
            self.settings,
            data=self.data,
            model=ModelConfig(name, depth=None if self.network == "conv" else 2),
            optim=replace(self.settings.optim, name=optimiser),
            schedule=ScheduleConfig("one-cycle", warmup=0.1),
        )
        return choose_settings(config, self.dataset, user_supplied=True)

    def hidden_layers(self, depth: int) -> int:
        """The number of hidden layers at a depth."""
        if self.network == "mlp" or depth == 0:
            return depth
        return conv_stages(tuple(self.dataset.train.x.shape[1:])).depth(depth)

    def config(self, candidate: Candidate, epochs: int, batch_size: int) -> TrainConfig:
        """How a candidate is trained, with the default settings."""
        network = "mlp" if candidate.depth == 0 else self.network
        model = ModelConfig(
            f"{candidate.kind}-{network}",
            depth=self.hidden_layers(candidate.depth),
            width=self.widths[len(self.widths) // 2],
            activation="tanh" if network == "mlp" else None,
            gate_bias=self._gate_bias(candidate),
        )
        optim = self.defaults.optim if network == self.network else self._linear_optim()
        return replace(
            self.defaults,
            model=model,
            optim=optim,
            epochs=epochs,
            batch_size=batch_size,
            metric="loss",
            evaluate_test="never",
            patience=max(2, -(-epochs // 3)),
            threads=1,
        )

    def _linear_optim(self) -> OptimConfig:
        """Muon is for matrices of hidden layers; the linear model of a convolutional family has none."""
        config = replace(self.defaults, optim=OptimConfig("sgd"))
        return choose_settings(config, self.dataset, user_supplied=True).optim

    def _gate_bias(self, candidate: Candidate) -> float | None:
        if candidate.kind == "plain" or candidate.depth < 2:
            return None
        layers = self.hidden_layers(candidate.depth)
        return round(suggest_gate_bias(layers, "linear" if self.network == "mlp" else "conv"), 3)

    def space(self, candidate: Candidate, config: TrainConfig) -> Space:
        """What is searched for a candidate: what its kind of network has, around the default settings."""
        rate, decay = config.optim.lr, config.optim.weight_decay
        fastest = _FASTEST[min(candidate.depth, 1)]
        space: Space = {
            "optim.lr": Range(_digits(rate / 15), _digits(max(rate, min(rate * fastest, 1.0))), log=True),
            "optim.weight_decay": Range(_digits(decay / 20), _digits(decay * 5), log=True),
        }
        if candidate.depth == 0:
            return space
        if len(self.widths) > 1:
            space["model.width"] = Choices(self.widths)
        if self.network == "mlp":
            space["model.activation"] = Choices(("tanh", "relu"))
        if (bias := config.model.gate_bias) is not None:
            space["model.gate_bias"] = Range(bias - 1.5, bias + 1.0)
        return space


def _is_known(data: DataConfig) -> bool:
    from verydeep.data import KNOWN_NAMES

    return data.source in KNOWN_NAMES


def _digits(value: float) -> float:
    return float(f"{value:.3g}")
