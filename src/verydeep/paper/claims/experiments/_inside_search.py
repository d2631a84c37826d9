"""The networks of Figures 2 to 4: the best of a random search, trained again with several seeds and examined.

A study has a group per set of images with 100 settings of a tanh network of 50 layers. As soon as a search is over, the
study receives a group with its best setting and three seeds. What is examined is kept beside each network's run, so
that the same command continues wherever it was stopped.
"""

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verydeep.cpu import cpu_settings
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.paper._train_study import train_study
from verydeep.paper.claims._experiment import ClaimSearchOptions, ClaimSearchResult, Report
from verydeep.paper.fig1._protocol import HALVING, METRIC, Fig1Network, Protocol
from verydeep.paper.fig1._results import Fig1Results, Fig1Trial
from verydeep.studies import Group, Settings, Stages, Study, TrainingRecord, draw, start_study, with_settings
from verydeep.training import Run, interruptible, load_own, split_of

if TYPE_CHECKING:
    from verydeep.analysis import ClassRouting
    from verydeep.data import Split
    from verydeep.models import Network

_NETWORK, _QUICK_NETWORK = Fig1Network("highway", 50), Fig1Network("highway", 10)
MNIST, CIFAR = "MNIST", "CIFAR-100"
FIRST_LAYERS = 40  # layers, of which the paper says that they matter for CIFAR-100
NOTICEABLE = 0.001  # an increase of the error that counts as noticeable
_TANH = {"model.activation": "tanh"}  # as in the paper's Figure 2
_FILE = "inside.json"  # in the folder of an examined run


@dataclass(frozen=True)
class TanhSearch:
    """The search for the best tanh network on one set of images.

    The settings are those of Figure 1's study, with the activation fixed. A setting's number determines each value
    independently of the others, so those that have tanh in Figure 1 stay what they are, and the others fill up their
    number to 100.

    Attributes:
        name: What the set of images is called.
        protocol: The set of images and the stages of halving.
        network: The network of Figure 1 whose settings are searched.
        seeds: The seeds with which the best setting is trained again.
    """

    name: str
    protocol: Protocol
    network: Fig1Network = _NETWORK
    seeds: tuple[int, ...] = (0, 1, 2)

    @property
    def group(self) -> Group:
        """The settings that are searched, as the study trains them."""
        group = self.protocol.group(self.network)
        assert group.sampling is not None
        space = {name: domain for name, domain in group.sampling.space.items() if name not in _TANH}
        return replace(
            group,
            name=self.name.lower(),
            config=with_settings(group.config, _TANH),
            sampling=replace(group.sampling, space=space),
        )

    def settings(self, number: int) -> Settings:
        """The values of a setting."""
        sampling = self.group.sampling
        assert sampling is not None
        return draw(sampling.space, sampling.seed, number) | _TANH

    def best_group(self, number: int) -> Group:
        """A setting, trained with every seed."""
        config = with_settings(self.group.config, self.settings(number))
        return Group(f"{self.group.name}-best-{number:04}", config, self.seeds)

    def known(self, results: Path) -> Mapping[int, Fig1Trial]:
        """The settings that Figure 1's study has trained."""
        if self.protocol.data != HALVING.data:
            return {}
        trials = Fig1Results(results / "fig1", self.network, HALVING).trials
        return {number: trial for number, trial in trials.items() if trial.settings == self.settings(number)}


SEARCHES = (
    TanhSearch(MNIST, HALVING),
    TanhSearch(CIFAR, Protocol(Stages((5, 15, 50, 200), (100, 33, 10, 5)), "cifar100")),
)
QUICK_SEARCHES = tuple(
    TanhSearch(name, Protocol(Stages((1, 3), (3, 1)), "digits"), _QUICK_NETWORK, (0, 1)) for name in (MNIST, CIFAR)
)


def search_networks(options: ClaimSearchOptions) -> ClaimSearchResult | None:
    """Search, train the best again and examine it; None if there was no time for all of it."""
    began = time.monotonic()
    searches = QUICK_SEARCHES if options.quick else SEARCHES
    with interruptible() as interrupt:
        if interrupt.requested:
            return None
        study = _start(searches, options)
        _train(study, searches, options)
        if study.is_open or study.unfinished():
            return None
        found = [_ExaminedSearch.of(study, search) for search in searches]
        for each in found:
            for record in each.networks:
                if interrupt.requested or _is_over(began, options.seconds):
                    return None
                with options.bar(f"{each.search.name}, seed {record.number}") as report:
                    _examine(study, record, options.root, report or (lambda _: None))
    return ClaimSearchResult(
        {each.search.name: each.numbers(study) for each in found}, sum(each.seconds(study) for each in found)
    )


def _is_over(began: float, seconds: float | None) -> bool:
    return seconds is not None and time.monotonic() - began >= seconds


def _start(searches: Sequence[TanhSearch], options: ClaimSearchOptions) -> Study:
    """Start or continue the study, and tell it what Figure 1's study has trained."""
    study = start_study(
        options.runs,
        [search.group for search in searches],
        metric=METRIC,
        storage=options.study.storage,
        artifacts=options.study.artifacts,
        heartbeat=options.study.heartbeat,
        share_all=True,  # all seeds of the best are examined here
    )
    with study.store.claiming():
        attempts = study.attempts()
        for search in searches:
            for number, trial in search.known(options.results).items():
                name = search.group.training_name(number)
                if name not in attempts:
                    status = "diverged" if trial.status == "diverged" else "paused"
                    study.add_result(name, status, trial.metrics)
    study.set_open(True)  # until the best settings are known
    return study


def _train(study: Study, searches: Sequence[TanhSearch], options: ClaimSearchOptions) -> None:
    """Train the searches, and the best of each as soon as it is known."""
    left = {search.group.name: search for search in searches}
    seen: set[tuple[str, int]] = set()

    def add_best(record: TrainingRecord) -> None:
        if not record.has_ended or record.group not in left or (record.name, record.epochs) in seen:
            return
        seen.add((record.name, record.epochs))
        if study.unfinished([record.group]):
            return
        search = left.pop(record.group)
        best = _best(study.records([record.group]))
        if best is None:
            raise UserError(f"every setting of {search.name} diverged; there is no network to examine")
        study.set_group(search.best_group(best.number))
        study.set_open(bool(left))
        shutil.rmtree(study.run_path(record.group), ignore_errors=True)  # nothing will resume from 100 runs

    seconds, jobs = options.seconds, options.study.jobs
    train_study(study, None, add_best, jobs, options.root, seconds, options.progress)


def _best(records: Sequence[TrainingRecord]) -> TrainingRecord | None:
    """The training with the lowest training loss, compared as halving compares them."""
    found = [(float(f"{each.value:.5g}"), each.number, each) for each in records if each.value is not None]
    return min(found, key=lambda each: each[:2])[2] if found else None


@dataclass(frozen=True)
class _ExaminedSearch:
    """A search that is over, and the networks that were trained with its best setting and examined."""

    search: TanhSearch
    records: Sequence[TrainingRecord]
    best: TrainingRecord
    networks: Sequence[TrainingRecord]

    @classmethod
    def of(cls, study: Study, search: TanhSearch) -> "_ExaminedSearch":
        records = study.records([search.group.name])
        best = _best(records)
        assert best is not None
        return cls(search, records, best, study.records([search.best_group(best.number).name]))

    def numbers(self, study: Study) -> dict[str, Any]:
        """What is stored of them."""
        best, settings = self.best, self.search.settings
        return {
            "best": {"number": best.number, "settings": settings(best.number), "train_loss": best.value},
            "stages": asdict(self.search.protocol.stages),
            "searched": [
                {
                    "number": each.number,
                    "settings": settings(each.number),
                    "epochs": each.epochs,
                    "train_loss": each.value,
                    "of_figure_1": not each.attempts,
                }
                for each in self.records
            ],
            "networks": {record.number: _numbers(study, record) for record in self.networks},
        }

    def seconds(self, study: Study) -> float:
        """The time on one core, without that of Figure 1's study."""
        examined = sum(_numbers(study, record).get("seconds_to_examine", 0.0) for record in self.networks)
        trained = sum(each.seconds for each in (*self.records, *self.networks) if each.attempts)
        return float(examined + trained)


def _numbers(study: Study, record: TrainingRecord) -> dict[str, Any]:
    """What is stored of a network."""
    last = record.curve[-1].to_dict() if record.curve else {}
    names = ("train_loss", "train_accuracy", "test_accuracy")
    trained = {"status": record.status, "epochs": record.epochs} | {name: last.get(name) for name in names}
    return trained if record.status == "diverged" else trained | read_json(study.run_path(record.name) / _FILE)


def _examine(study: Study, record: TrainingRecord, root: Path | None, report: Report) -> None:
    """Examine a network on its whole training set, as `verydeep analyze` does, and keep the numbers beside its run."""
    if record.status == "diverged":
        return
    folder = study.fetch_run(record.name)
    if folder is None:
        raise UserError(f"{record.name} was trained on another machine; name a folder that both share (--artifacts)")
    if not (folder / _FILE).exists():
        start = time.process_time()
        run = Run.load(folder)
        with cpu_settings(1):
            found = examine(run.model, split_of(run, load_own(run, root), "train"), report)
        found["seconds_to_examine"] = round(time.process_time() - start, 1)
        write_atomic(folder / _FILE, json.dumps(found, indent=1) + "\n")


def examine(model: "Network", data: "Split", report: Report) -> dict[str, Any]:
    """The numbers of one network: the paper's observations, the routing of classes, and values by layer."""
    from verydeep.analysis import (
        class_routing,
        depth_usage,
        gate_statistics,
        greedy_lesions,
        lesion_study,
        observations,
    )

    def part(first: float, end: float) -> Report:
        return lambda done: report(first + (end - first) * done)

    gates = gate_statistics(model, data, progress=part(0, 0.05))
    routing = class_routing(model, data, progress=part(0.05, 0.1))
    lesions = lesion_study(model, data, "train", part(0.1, 0.3))
    usage = depth_usage(greedy_lesions(model, data, "train", progress=part(0.3, 1)), NOTICEABLE)
    bias = [float(after.mean() - before.mean()) for after, before in zip(gates.bias, gates.initial_bias, strict=True)]
    rise = lesions.error[:FIRST_LAYERS] - lesions.baseline.error
    return asdict(observations(gates, lesions, usage)) | {
        "probe_accuracy": routing.probe_accuracy,
        "probe_chance": routing.probe_chance,
        "significant": routing.significant,
        "first_layers": len(rise),
        "first_layers_that_matter": int((rise > NOTICEABLE).sum()),
        "mean_bias_change": bias,
        "mean_activity": [float(values.mean()) for values in gates.mean],
        "class_difference": class_difference(routing),
        "lesion_error": [float(error) for error in lesions.error],
    }


def class_difference(routing: "ClassRouting") -> list[float]:
    """How much the mean gates of classes differ from those of all samples: the root mean square, per layer."""
    return [float((values**2).mean() ** 0.5) for values in routing.difference]
