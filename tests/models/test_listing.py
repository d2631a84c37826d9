import subprocess
import sys

import pytest

from verydeep.models import list_models
from verydeep.models._cards import CARDS, Card, signature
from verydeep.models._registry import count_size


@pytest.mark.parametrize("card", CARDS, ids=signature)
def test_the_listed_size_is_that_of_the_network(card: Card) -> None:
    info = next(info for info in list_models() if signature(info) == signature(card))
    size = {"layers": info.layers, "parameters": info.parameters, "multiply_adds": info.multiply_adds}
    assert size == count_size(card), f'write this into models/sizes.json under "{signature(card)}"'


def test_networks_are_listed_without_torch() -> None:
    program = "import sys; from verydeep.models import list_models; list_models(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
