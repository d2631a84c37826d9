"""The results of an experiment on disk: results/claims/NAME.json."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verydeep.config import dotted, from_dict, to_dict
from verydeep.cpu import cpu_settings
from verydeep.errors import UserError
from verydeep.files import read_json, write_atomic
from verydeep.paper.claims._experiment import ClaimCurve, ClaimExperiment, Conclusion, Evidence, Report
from verydeep.studies import with_settings
from verydeep.training import EpochMetrics, TrainConfig, environment

_STATUSES = ("trained", "diverged")


class ClaimResult:
    """What was measured for an experiment, in the file NAME.json.

    A file holds the settings of its first training in full, and of the others those that differ.

    Args:
        results: The folder of all results; those of experiments are in its folder `claims`.
        experiment: The experiment.
        quick: Whether a tiny version of it is trained on the digits.

    Attributes:
        trainings: What is to be trained, by name.
        curves: What is trained, by name and seed.
        measured: What the experiment's `measure` or `search` has returned.
        environments: Versions and machines.
    """

    def __init__(self, results: Path, experiment: ClaimExperiment, quick: bool) -> None:
        self.results, self.experiment, self.quick = results, experiment, quick
        self.file = results / "claims" / f"{experiment.name}.json"
        self.trainings = {training.name: training for training in experiment.trainings(quick)}
        self.read()

    def read(self) -> None:
        """Read the file again."""
        self.curves: dict[tuple[str, int], ClaimCurve] = {}
        self.environments: list[dict[str, Any]] = []
        self.measured: dict[str, Any] = {}
        self._measuring: dict[str, Any] = {}  # how long it took, and where
        self._environment_of: dict[tuple[str, int], int] = {}
        self._before: dict[str, Any] = read_json(self.file) if self.file.exists() else {}
        self._read(self._before)

    @property
    def total(self) -> int:
        """The number of trainings, each seed counted."""
        return sum(len(training.seeds) for training in self.trainings.values())

    @property
    def is_complete(self) -> bool:
        """Whether everything is trained and measured."""
        return len(self.curves) == self.total and self.is_measured

    @property
    def seconds(self) -> float:
        """The time of all trainings and measurements on one core."""
        trained = sum(curve.metrics[-1].seconds for curve in self.curves.values() if curve.metrics)
        return trained + float(self._measuring.get("seconds", 0))

    @property
    def evidence(self) -> Evidence:
        """What conclusions are drawn from: all curves, or none while some are missing."""
        return Evidence(list(self.curves.values()) if self.is_complete else (), self.results, self.measured)

    def conclusions(self) -> Sequence[Conclusion]:
        """A conclusion per statement; without numbers while trainings or measurements are missing.

        An experiment with a search decides for itself what follows from other results until it is done.
        """
        if not self.is_complete and (self.experiment.search is None or self.total):
            text = f"{len(self.curves)} of {self.total} trainings" if self.curves else ""
            return [Conclusion(text)] * len(self.experiment.statements)
        return self.experiment.conclude(self.evidence)

    def missing(self) -> list[tuple[str, int]]:
        """The names and seeds that are not trained."""
        wanted = [(name, seed) for name, training in self.trainings.items() for seed in training.seeds]
        return [each for each in wanted if each not in self.curves]

    @property
    def is_measured(self) -> bool:
        """Whether there is nothing to measure besides trainings, or it is done."""
        return (self.experiment.measure is None and self.experiment.search is None) or bool(self.measured)

    def measure(self, report: Report = lambda _: None) -> None:
        """Measure what is no training, unless that is done; `report` receives the fraction that is done."""
        if self.experiment.measure is not None and not self.measured:
            start = time.process_time()
            with cpu_settings(1):
                numbers = self.experiment.measure(self.quick, report)
            self.add_measured(numbers, time.process_time() - start)

    def add_measured(self, numbers: Mapping[str, Any], seconds: float) -> None:
        """Add and write what was measured in some time on one core."""
        self.measured = dict(_plain(numbers))
        self._measuring = {"seconds": round(seconds, 1), "environment": self._number_of(environment())}
        self.write()

    def add(
        self, name: str, seed: int, status: str, metrics: Sequence[EpochMetrics], machine: Mapping[str, Any]
    ) -> bool:
        """Add a training that has ended; return whether it was new."""
        if name not in self.trainings or (name, seed) in self.curves or seed not in self.trainings[name].seeds:
            return False
        self.curves[name, seed] = ClaimCurve(self.trainings[name].labels, seed, status, tuple(metrics))
        self._environment_of[name, seed] = self._number_of(dict(machine))
        return True

    def write(self) -> None:
        """Write the file, unless there is nothing to say or it says the same already."""
        if not (self.curves or self.measured) and all(found.verdict is None for found in self.conclusions()):
            return
        conclusions = [
            {
                "section": statement.section,
                "statement": statement.text,
                "rule": statement.rule,
                "measured": found.measured,
                "verdict": found.verdict,
                "numbers": dict(found.numbers),
            }
            for statement, found in zip(self.experiment.statements, self.conclusions(), strict=True)
        ]
        values: dict[str, Any] = {
            "experiment": self.experiment.name,
            "command": f"verydeep reproduce claims --only {self.experiment.name}{' --quick' if self.quick else ''}",
            "seconds": round(self.seconds, 1),
            "conclusions": _plain(conclusions),
        }
        if self.curves or self.measured:
            values["environments"] = self.environments
        if self.measured:
            values["measurement"] = {**self._measuring, "numbers": self.measured}
        if self.curves:
            values |= self._trainings()
        if {name: value for name, value in self._before.items() if name in values} != values:
            stamp = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "written_with": environment()}
            self._before = {**values, **stamp}
            write_atomic(self.file, json.dumps(self._before, indent=1) + "\n")

    def _trainings(self) -> dict[str, Any]:
        base = shared_settings(next(iter(self.trainings.values())).config)
        known = dotted(to_dict(base))
        lines = []
        for name, training in self.trainings.items():
            own = dotted(to_dict(shared_settings(training.config)))
            settings = {key: value for key, value in own.items() if value != known[key]}
            lines += [
                {"name": name, "seed": seed, "settings": settings, "status": self.curves[name, seed].status}
                | {"environment": self._environment_of[name, seed]}
                | {"metrics": [line.to_dict() for line in self.curves[name, seed].metrics]}
                for seed in training.seeds
                if (name, seed) in self.curves
            ]
        return dict(_plain({"config": to_dict(base), "trainings": lines}))

    def _number_of(self, machine: dict[str, Any]) -> int:
        if machine not in self.environments:
            self.environments.append(machine)
        return self.environments.index(machine)

    def _read(self, values: dict[str, Any]) -> None:
        if not isinstance(values.get("trainings", []), list):
            raise UserError(f"{self.file} is damaged ('trainings' is not a list); rename or delete it to start again")
        try:
            self.environments = [dict(each) for each in values.get("environments", [])]
            lines = values.get("trainings", [])
            if "measurement" in values:
                self._measuring = dict(values["measurement"])
                self.measured = dict(self._measuring.pop("numbers"))
                float(self._measuring["seconds"])
            base = from_dict(TrainConfig, values["config"], f"{self.file}: config") if lines else TrainConfig()
            for line in lines:
                name, seed, metrics = line["name"], line["seed"], tuple(map(EpochMetrics.from_dict, line["metrics"]))
                training = self.trainings.get(name)
                if training is None or shared_settings(training.config) != with_settings(base, line["settings"]):
                    raise UserError(
                        f"{self.file} was measured with other settings; rename or delete it and its runs to start again"
                    )
                if line["status"] not in _STATUSES or not 0 <= line["environment"] < len(self.environments):
                    raise ValueError(f"{name} has an unknown status or machine")
                self.curves[name, seed] = ClaimCurve(training.labels, seed, line["status"], metrics)
                self._environment_of[name, seed] = line["environment"]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"{self.file} is damaged ({error!r}); rename or delete it to start again") from error


def _plain(values: object) -> Any:  # noqa: ANN401 - what JSON holds
    """The values as they are read back from a file, with None for a loss that is not finite."""
    return json.loads(json.dumps(values), parse_constant=lambda _: None)


def shared_settings(config: TrainConfig) -> TrainConfig:
    """A configuration without what seeds and machines may change."""
    return replace(config, seed=0, device="auto", threads=None)
