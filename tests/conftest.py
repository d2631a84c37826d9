import pytest
import torch


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    torch.manual_seed(0)


torch.set_num_threads(1)  # two test workers on two cores
