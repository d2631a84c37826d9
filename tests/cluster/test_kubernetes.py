"""The Job for Kubernetes: its fields, and its very command and environment as processes on this machine."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from _postgres import Server

from verydeep.cli import main

from .conftest import ROOT, SEARCH, Result, commands, in_background, result, runs, wait_until, words

JOB = yaml.safe_load((ROOT / "cluster" / "workers.yaml").read_text())
POD = JOB["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def start_pod(environment: dict[str, str], secrets: dict[str, dict[str, str]], volume: Path) -> subprocess.Popen[str]:
    """What Kubernetes does: the container's command with its secrets in the environment and its volume mounted."""
    (mount,) = CONTAINER["volumeMounts"]
    assert [mount["name"]] == [each["name"] for each in POD["volumes"]]
    command = [word.replace(mount["mountPath"], str(volume)) for word in (*CONTAINER["command"], *CONTAINER["args"])]
    references = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in CONTAINER["env"]}
    filled = {name: secrets[reference["name"]][reference["key"]] for name, reference in references.items()}
    return subprocess.Popen(
        command, env=environment | filled, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.slow
def test_two_pods_of_which_one_is_evicted_complete_a_study_with_the_same_bits(
    server: Server, environment: dict[str, str], calm: dict[str, Result], folder: Path
) -> None:
    (start,) = commands("Kubernetes")
    (folder / "search.toml").write_text(SEARCH)
    address = words(start)[words(start).index("--storage") + 1]
    watching = in_background(words(start, **{"search-digits": "search.toml", address: server.url}))
    wait_until((folder / "runs" / "digits" / "study.json").exists)
    secrets = {"verydeep-storage": {"address": server.url}}
    volumes = [folder / "pod-0", folder / "pod-1"]
    evicted, other = (start_pod(environment, secrets, volume) for volume in volumes)
    wait_until(lambda: runs(volumes[0]) != [])
    evicted.send_signal(signal.SIGTERM)
    assert "verydeep: stopped; everything is saved" in evicted.communicate()[0]
    assert evicted.returncode == 130
    assert "the study is complete" in other.communicate()[0]
    assert other.returncode == watching() == 0
    finished = [path for volume in volumes for path in runs(volume) if (path / "summary.json").exists()]
    assert len(finished) == 3
    assert {path.name: result(path) for path in finished} == calm


def test_a_mistake_ends_a_pod_with_the_exit_code_that_fails_the_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (variable,) = CONTAINER["env"]
    monkeypatch.setenv(variable["name"], "mysql://postgres/studies")
    code = main([*CONTAINER["command"][1:], *CONTAINER["args"]])
    assert "storage: expected postgresql://" in capsys.readouterr().err
    (failing,) = [
        rule["onExitCodes"] for rule in JOB["spec"]["podFailurePolicy"]["rules"] if rule["action"] == "FailJob"
    ]
    assert failing == {"containerName": CONTAINER["name"], "operator": "In", "values": [code]}


def test_the_job_has_the_fields_that_kubernetes_demands() -> None:
    assert (JOB["apiVersion"], JOB["kind"]) == ("batch/v1", "Job")
    assert set(JOB["spec"]) == {"parallelism", "backoffLimit", "podFailurePolicy", "template"}
    assert JOB["spec"]["parallelism"] > 1
    assert POD["restartPolicy"] == "Never"  # a policy for failures allows no other
    assert set(CONTAINER) <= {"name", "image", "command", "args", "env", "resources", "volumeMounts"}
    for rule in JOB["spec"]["podFailurePolicy"]["rules"]:
        assert rule["action"] in ("FailJob", "Ignore", "Count")
        assert len(rule.keys() & {"onExitCodes", "onPodConditions"}) == 1
        conditions: list[dict[str, Any]] = rule.get("onPodConditions", [])
        assert all(condition == {"type": "DisruptionTarget", "status": "True"} for condition in conditions)


def test_the_address_and_its_password_are_nowhere_in_the_job() -> None:
    assert all(set(each) == {"name", "valueFrom"} for each in CONTAINER["env"])
    assert "--storage" not in [*CONTAINER["command"], *CONTAINER["args"]]


def test_the_job_trains_the_study_of_the_guide() -> None:
    (start,) = commands("Kubernetes")
    given = words(start)
    assert Path(CONTAINER["args"][0]).name == Path(given[given.index("--study") + 1]).name
