"""Random sets of layers are closed and swapped; the unchanged order is the baseline to the bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.analysis._families import FAMILIES
from tests.analysis._models import Own, mlp, shaken
from torch import nn

from verydeep.analysis import (
    RandomChanges,
    evaluate_model,
    find_blocks,
    lesion_study,
    load_result,
    random_lesions,
    reorder_study,
    save_result,
)
from verydeep.errors import UserError
from verydeep.models import create_model

G = torch.Generator().manual_seed(0)
DATA = (torch.randn(40, 1, 6, 6, generator=G), torch.arange(40) % 3)


def residual(kind: str) -> nn.Module:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"blocks": 3, "widths": [4, 6, 6], "stem": 4, "input_shape": (1, 6, 6), "classes": 3}
    model = create_model(kind, **sizes)
    model.train()(DATA[0])  # normalisation has seen something
    return model


@pytest.mark.parametrize("make", [mlp, lambda: residual("resnet-110"), lambda: residual("highway-110")])
def test_the_unchanged_order_equals_the_baseline_to_the_bit(make: Any) -> None:
    model = make()
    found = reorder_study(model, DATA, [0, 2], draws=2)
    whole = evaluate_model(model, DATA)
    assert (found.loss[0] == found.baseline.loss).all()
    assert (found.error[0] == found.baseline.error).all()
    assert found.baseline.error == whole.error
    assert found.baseline.loss == pytest.approx(whole.loss, rel=1e-6)
    assert (found.loss[1] != found.baseline.loss).all()


@pytest.mark.parametrize("name", ["gpt2", "vit", "resnet"])
def test_swapped_blocks_are_those_of_a_network_with_swapped_weights(name: str) -> None:
    family = FAMILIES[name]
    model, batches = family.model(), family.batches()
    blocks = find_blocks(model, family.example())
    found = reorder_study(model, batches, [2], draws=1, objective=family.objective, blocks=blocks)
    first, second = np.flatnonzero(found.order[0, 0] != np.arange(len(blocks)))
    one, other = (model.get_submodule(blocks[number].name) for number in (first, second))
    saved = {key: value.clone() for key, value in one.state_dict().items()}
    one.load_state_dict({key: value.clone() for key, value in other.state_dict().items()})
    other.load_state_dict(saved)
    assert evaluate_model(model, batches, objective=family.objective).loss == found.loss[0, 0]


def test_layers_of_a_stack_are_swapped_as_their_weights_are() -> None:
    model = mlp()
    found = reorder_study(model, DATA, [2], draws=1)
    order = found.order[0, 0]
    with torch.no_grad():
        assert model.stack is not None
        for parameter in model.stack.parameters():
            parameter.copy_(parameter[torch.from_numpy(order)].clone())
    assert evaluate_model(model, DATA).loss == pytest.approx(found.loss[0, 0], rel=1e-5)


def test_one_random_lesion_is_that_of_the_lesion_study() -> None:
    model = residual("resnet-110")
    found, study = random_lesions(model, DATA, [1], draws=4), lesion_study(model, DATA)
    closed = np.argmax(found.order[0] < 0, axis=-1)
    np.testing.assert_allclose(found.loss[0], study.loss[closed], rtol=1e-6)
    assert (random_lesions(model, DATA, [0], draws=1).loss == found.baseline.loss).all()


def test_only_layers_of_one_class_and_shape_are_swapped() -> None:
    model = residual("highway-110")  # layers 3 and 6 change the shape
    found = reorder_study(model, DATA, [6], draws=20)
    assert (found.order[..., [3, 6]] == [3, 6]).all()
    assert ((found.order != np.arange(9)).sum(-1) == 6).all()
    stages = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert (stages[found.order] == stages).all()
    with pytest.raises(UserError, match="at most 2 layers can be swapped"):
        reorder_study(shaken(Own), DATA, [4])


def test_draws_follow_the_seed_and_the_layers_allowed() -> None:
    model = mlp()
    first, again, other = (random_lesions(model, DATA, [1, 2], 3, seed, layers=[0, 1, 2]) for seed in (0, 0, 1))
    assert (first.order == again.order).all()
    assert (first.loss == again.loss).all()
    assert (first.order != other.order).any()
    assert (first.order[..., 3:] >= 0).all()
    assert ((first.order < 0).sum(-1) == [[1] * 3, [2] * 3]).all()


def test_results_are_saved_and_drawn(tmp_path: Path) -> None:
    found = random_lesions(mlp(), DATA, [1, 2], 2, split="test")
    save_result(found, tmp_path / "random.npz")
    loaded = load_result(tmp_path / "random.npz", RandomChanges)
    assert (loaded.order == found.order).all()
    assert repr(loaded) == repr(found)
    found.plot(tmp_path / "random.png")
    assert (tmp_path / "random.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        ([], {}, "counts is empty"),
        ([3], {}, "must be even; got 3"),
        ([100], {}, "counts must be between 0 and"),
        ([2], {"draws": 0}, "draws must be at least 1"),
        ([2], {"layers": [99]}, "there is no layer 99"),
    ],
)
def test_mistakes_are_explained(counts: list[int], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        reorder_study(mlp(), DATA, counts, **options)
