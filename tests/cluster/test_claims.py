"""Many workers that start at the same time."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
from _postgres import Server

from verydeep.data import DataConfig
from verydeep.studies import Group, open_study, start_study
from verydeep.studies._claim import claim_training
from verydeep.training import ModelConfig, TrainConfig

from .conftest import in_background, wait_until

WORKERS = 6


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["journal", "postgresql"])
def test_workers_that_start_together_get_a_training_each(
    storage: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address = None
    if storage == "postgresql":
        server: Server = request.getfixturevalue("server")
        address = server.url
    group = Group("", TrainConfig(DataConfig("digits")), seeds=tuple(range(WORKERS)))
    study = start_study(tmp_path / "together", [group], storage=address)
    together = Barrier(WORKERS)

    def claim(number: int) -> str:
        mine = open_study(tmp_path / "together", storage=address)
        with mine.store.working(f"worker-{number}"):
            together.wait()
            claimed = claim_training(mine, f"worker-{number}")
            together.wait()  # nobody's lock is released before all have claimed
        assert claimed is not None
        return claimed.name

    with ThreadPoolExecutor(WORKERS) as pool:
        names = list(pool.map(claim, range(WORKERS)))
    assert sorted(names) == [f"seed-{number}" for number in range(WORKERS)]
    assert len(study.optuna.get_trials()) == WORKERS  # without attempts that nobody trains


@pytest.mark.slow
def test_a_worker_waits_for_a_free_connection(server: Server, tmp_path: Path) -> None:
    config = TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=8), epochs=1)
    start_study(tmp_path / "busy", [Group("", config, seeds=(0,))], storage=server.url)
    with ExitStack() as others:
        with suppress(psycopg.OperationalError):
            while True:
                others.enter_context(psycopg.connect(server.url))
        refused = (server.folder / "log").read_text().count("too many clients")
        ending = in_background(["verydeep", "worker", str(tmp_path / "busy"), "--storage", server.url])
        wait_until(lambda: (server.folder / "log").read_text().count("too many clients") > refused)
    assert ending() == 0
