"""What the guide to clusters says: its commands are run by the tests beside this one, and its claims hold."""

import json
import re
from pathlib import Path

import optuna
from optuna.storages import GrpcStorageProxy, JournalStorage
from optuna.storages._heartbeat import BaseHeartbeat
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from verydeep.data import DataConfig
from verydeep.studies import Group, start_study, work
from verydeep.studies._claim import claim_training, release_training
from verydeep.training import ModelConfig, TrainConfig

from .conftest import GUIDE, ROOT, commands

RUN = {"SLURM": 3, "Kubernetes": 1, "One training on several machines": 1}  # by test_slurm, test_kubernetes, ...


def test_every_command_of_the_guide_is_run_or_marked() -> None:
    blocks = re.findall(r"^```bash\n# cluster: (.*?)\n(.*?)^```", GUIDE, flags=re.S | re.M)
    runnable = "".join(block for needs, block in blocks if needs != "Kubernetes")
    assert runnable.replace("\\\n", " ").splitlines() == [line for heading in RUN for line in commands(heading)]
    assert {heading: len(commands(heading)) for heading in RUN} == RUN


def test_the_guide_names_every_file_for_clusters() -> None:
    assert set(re.findall(r"\(\.\./cluster/([\w.]+)\)", GUIDE)) == {path.name for path in (ROOT / "cluster").iterdir()}


def test_the_image_gets_files_that_exist() -> None:
    copied = re.findall(r"^COPY (.*) \S+$", (ROOT / "cluster" / "Dockerfile").read_text(), flags=re.M)
    names = [name for line in copied for name in line.split()]
    assert {"pyproject.toml", "src", "configs", "constraints.txt"} <= set(names)
    assert all((ROOT / name).exists() for name in names)


def test_optunas_proxy_has_no_heartbeats() -> None:
    """If this fails, Optuna has added them, and workers could use the proxy."""
    assert not issubclass(GrpcStorageProxy, BaseHeartbeat)


def test_a_dashboard_sees_every_attempt_as_a_trial(tmp_path: Path) -> None:
    config = TrainConfig(DataConfig("digits", validation=0.2), ModelConfig(depth=2, width=8), epochs=1)
    study = start_study(tmp_path / "study", [Group("", config, seeds=(0,))])
    with study.store.working("killed"):
        claim = claim_training(study, "killed")
        assert claim is not None
        release_training(study, claim)
    assert work(study)
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "study" / "journal.log")))  # as the dashboard opens it
    failed, finished = optuna.load_study(study_name="study", storage=storage).trials
    assert (failed.state, finished.state) == (TrialState.FAIL, TrialState.COMPLETE)
    assert failed.user_attrs["training"] == finished.user_attrs["training"] == "seed-0"
    assert {"worker", "metrics:1", "result"} <= finished.user_attrs.keys()


def test_the_load_that_is_claimed_was_measured() -> None:
    measured = json.loads((ROOT / "results" / "benchmarks" / "worker-load.json").read_text())
    text = " ".join(GUIDE.split())
    for storage, name in (("postgresql", "PostgreSQL server"), ("journal", "journal file")):
        assert f"a {name} took {measured[storage]['100']['epochs_per_second']:.0f} epochs per second" in text
    times = measured["postgresql"]["100"]
    assert f"(a load average of {measured['load_average']:.0f})" in text
    assert f"A report took {times['seconds_per_epoch_report']:.2f} seconds" in text
    assert f"half waited more than {times['seconds_per_claim']:.0f} seconds" in text
