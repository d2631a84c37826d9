import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from verydeep.errors import UserError
from verydeep.models import (
    Conv,
    Dense,
    Dropout,
    Pool,
    create_model,
    from_pretrained,
    load_weights,
    save_pretrained,
    save_weights,
)


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("highway-mlp", {"depth": 4, "carry": "independent"}),
        ("plain-mlp", {"depth": 3, "activation": "relu"}),
        ("highway-mnist-16", {"classes": 7}),
        ("fitnet-a", {}),
        ("nin", {}),
        ("highway-110", {"blocks": 1}),
    ],
)
def test_a_saved_network_comes_back_to_the_bit(name: str, overrides: dict[str, Any], tmp_path: Path) -> None:
    model = create_model(name, **overrides)
    save_pretrained(model, tmp_path / "model")
    again = from_pretrained(tmp_path / "model")
    assert again.config == model.config
    x = torch.randn(2, *model.input_shape)
    assert torch.equal(again(x), model.eval()(x))
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]


def test_a_network_that_was_loaded_trains_on(tmp_path: Path) -> None:
    save_pretrained(create_model("highway-mlp", depth=3), tmp_path)
    model = from_pretrained(tmp_path).train()
    model(torch.randn(2, 1, 28, 28)).sum().backward()
    assert all(p.requires_grad and p.grad is not None for p in model.parameters())


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_pretrained(create_model("highway-mlp", depth=3), tmp_path)
    return tmp_path


def refused(saved: Path) -> str:
    with pytest.raises(UserError) as error:
        from_pretrained(saved)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_weights_that_do_not_fit_are_named(saved: Path) -> None:
    weights = load_file(saved / "model.safetensors")
    weights["stack.wieght"] = weights.pop("stack.weight")
    weights["input.bias"] = torch.zeros(7)
    save_file(weights, saved / "model.safetensors")
    message = refused(saved)
    assert "missing stack.weight" in message
    assert "unknown stack.wieght" in message
    assert "input.bias is (7,) instead of (50,)" in message


def test_weights_of_another_kind_of_number_are_refused(saved: Path) -> None:
    weights = load_file(saved / "model.safetensors")
    weights["input.bias"] = weights["input.bias"].long()
    save_file(weights, saved / "model.safetensors")
    assert "input.bias has dtype int64" in refused(saved)


def test_a_config_that_cannot_be_right_is_refused(saved: Path) -> None:
    config = json.loads((saved / "config.json").read_text())
    for change, words in (
        ({"architecture": "MLPConfg"}, "did you mean 'MLPConfig'?"),
        ({"architecture": []}, "unknown architecture"),
        ({"config": config["config"] | {"depht": 3}}, "unknown setting"),
        ({"config": config["config"] | {"depth": None}}, "depth: expected int"),
        ({"config": {}}, "missing 'kind'"),
        ({"config": 3}, "expected a table of settings"),
        ({"format": 99}, "another version"),
    ):
        (saved / "config.json").write_text(json.dumps(config | change))
        assert words in refused(saved)
    (saved / "config.json").write_text("{")
    assert "is not JSON" in refused(saved)
    (saved / "config.json").unlink()
    assert "expected a folder written by save_pretrained" in refused(saved)


def test_a_truncated_or_missing_weight_file_is_refused(saved: Path) -> None:
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    assert "cannot read" in refused(saved)
    path.unlink()
    assert "model.safetensors" in refused(saved)


def test_a_pickle_is_never_loaded(saved: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (saved / "sprung",))

    (saved / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    assert "cannot read" in refused(saved)
    assert not (saved / "sprung").exists()


def test_saving_where_nothing_can_be_written_leaves_a_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be written"):
        save_pretrained(create_model("highway-mlp", depth=3), tmp_path / "file")


def test_an_interrupted_save_leaves_the_old_model(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {file.name: file.read_bytes() for file in saved.iterdir()}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UserError, match="disk is full"):
        save_pretrained(create_model("highway-mlp", depth=5), saved)
    assert {file.name: file.read_bytes() for file in saved.iterdir()} == before


def test_tied_weights_of_a_module_of_one_s_own_are_saved_and_come_back(tmp_path: Path) -> None:
    def tied() -> nn.Sequential:
        first = nn.Linear(3, 3)
        second = nn.Linear(3, 3)
        second.weight = first.weight
        return nn.Sequential(first, second).double()

    model, other = tied(), tied()
    save_weights(model, str(tmp_path / "weights"))
    load_weights(other, str(tmp_path / "weights"))
    assert torch.equal(other[0].weight, model[0].weight)  # type: ignore[arg-type]
    assert other[0].weight.dtype == torch.float64
    assert other[0].weight is other[1].weight


def test_only_networks_are_saved_as_pretrained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Linear is not a verydeep network"):
        save_pretrained(nn.Linear(2, 2), tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (lambda: Conv(16, stride=0), "stride of a Conv must be at least 1, got 0"),
        (lambda: Conv(16, padding=-1), "padding of a Conv must be at least 0"),
        (lambda: Pool(0), "size of a Pool must be at least 1"),
        (lambda: Dropout(1.5), "at least 0 and less than 1, got 1.5"),
        (lambda: Dense(10, pieces=0), "pieces of a Dense must be at least 1"),
    ],
)
def test_layers_that_cannot_be_are_refused(layer: Callable[[], object], words: str) -> None:
    with pytest.raises(UserError, match=words):
        layer()


@pytest.mark.parametrize("place", [0.3, 0.9999])
def test_a_flipped_bit_in_the_weights_is_noticed(place: float, tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    save_weights(torch.nn.Linear(30, 20), file)
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 1
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"is damaged: its weights do not match their digest"):
        load_weights(torch.nn.Linear(30, 20), file)


def test_weights_without_a_digest_are_loaded(tmp_path: Path) -> None:
    module, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    save_file(module.state_dict(), tmp_path / "weights.safetensors")
    load_weights(other, tmp_path / "weights.safetensors")
    assert torch.equal(module.weight, other.weight)
