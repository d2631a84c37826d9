import os
from collections.abc import Iterator

import pytest
import torch
from _postgres import Server, installed
from hypothesis import settings

# Two test workers on two cores; and commands that are started must not choose their threads by how busy these are.
os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)
settings.register_profile("verydeep", deadline=None, derandomize=True)  # no time limits, the same cases every time
settings.load_profile("verydeep")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-golden", action="store_true", help="record the results of tests/golden again")
    parser.addoption("--record-names", action="store_true", help="record the public names again")


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    torch.set_flush_denormal(False)  # a command that ran inside the test may have set it


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A private PostgreSQL server, on a socket in a temporary folder."""
    found = installed()
    if found is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql, and pip install 'verydeep[postgres]'")
    with Server(found) as running:
        yield running
