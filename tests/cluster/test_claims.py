"""Many workers that start at the same time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from _postgres import Server

from verydeep.data import DataConfig
from verydeep.studies import Group, open_study, start_study
from verydeep.studies._claim import claim_training
from verydeep.training import TrainConfig

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
