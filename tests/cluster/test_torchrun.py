"""One training on several machines: two agents of torchrun on this one."""

import json
import socket
import subprocess
from pathlib import Path

import pytest

from verydeep.training import Run, read_config, train

from .conftest import TRAINING, commands, words


@pytest.mark.slow
def test_two_agents_of_torchrun_train_one_network(environment: dict[str, str], tmp_path: Path) -> None:
    (command,) = commands("One training on several machines")
    config, folder = tmp_path / "training.toml", tmp_path / "runs" / "highway100"
    config.write_text(TRAINING)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    replaced = {"highway100-mnist": config, "/shared": tmp_path, "node1:29400": endpoint}
    agent = words(command, **replaced)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    agents = [subprocess.Popen(agent, env=environment, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    ended = [(process.communicate()[0], process.returncode) for process in agents]
    assert [code for _, code in ended] == [0, 0], ended
    assert json.loads((folder / "environment.json").read_text())["processes"] == 2
    alone = train(read_config(config), tmp_path / "alone")
    losses = [[line.loss for line in each.metrics] for each in (Run.load(folder), alone)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
