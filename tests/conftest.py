from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)  # two test workers on two cores
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
