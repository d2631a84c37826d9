"""The shipped configurations: each can be trained, and says what its source says."""

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch

from verydeep.config import config_folder, dotted, find_config, list_configs, read_settings, to_dict
from verydeep.data import Dataset, Split
from verydeep.data.prepare._preprocess import fit_arrays
from verydeep.models import create_model
from verydeep.search import read_search
from verydeep.training import TrainConfig, complete_config, make_model, read_config
from verydeep.training.step._optimiser import make_optimiser

FOLDER = Path(__file__).parents[2] / "configs"
FILES = sorted(path for path in FOLDER.glob("*.toml") if not path.name.startswith("search-"))
FAST = sorted(FOLDER.glob("fast/*.toml"))
SHORT = sorted(FOLDER.glob("short/*.toml"))
SHAPES = {"mnist": (1, 28, 28), "cifar10": (3, 32, 32), "cifar100": (3, 32, 32)}

# The authors' published code: learning rate, milestones, epochs, weight decay, parameters, gate bias.
AUTHORS: dict[str, dict[str, Any]] = {
    "highway-mnist-16": {"lr": 0.01, "milestones": (100, 200), "epochs": 300, "parameters": 38_986, "bias": -1.0},
    "highway-mnist-32": {"lr": 0.01, "milestones": (100, 200), "epochs": 300, "parameters": 151_690, "bias": -1.0},
    "highway-19-nin-cifar10": {
        "lr": 0.025,
        "milestones": (200, 300, 350),
        "epochs": 400,
        "parameters": 2_256_838,
        "bias": -2.0,
    },
    "highway-19-nin-cifar100": {
        "lr": 0.025,
        "milestones": (200, 300, 350),
        "epochs": 400,
        "parameters": 2_265_928,
        "bias": -2.0,
    },
}
NAMES = {
    *AUTHORS,
    *(f"highway{depth}-mnist" for depth in (10, 20, 50, 100, 1000)),
    *(f"plain{depth}-mnist" for depth in (10, 20, 50, 100)),
    *("figures-mnist", "figures-cifar100"),
    *("fitnet-a-hints", "fitnet-b-hints"),
    *("fitnet-a", "fitnet-b", "highway-a", "highway-b", "highway-c", "maxout"),
    *("nin", "all-cnn-c", "resnet-110", "highway-110"),
    *("maxout-mnist", "dsn-mnist", "maxout-cifar10", "dsn-cifar10"),
    *(f"{name}-cifar100" for name in ("maxout", "nin", "dsn", "all-cnn-c")),
}


def read(name: str) -> TrainConfig:
    return read_config(FOLDER / f"{name}.toml")


def dataset_like(name: str) -> Dataset:
    split = Split(torch.zeros(1, *SHAPES[name]), torch.zeros(1, dtype=torch.int64))
    return Dataset(name, split, None, split, tuple(map(str, range(100 if name == "cifar100" else 10))))


def test_every_network_of_the_paper_has_a_configuration() -> None:
    assert {path.stem for path in FILES} == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES + FAST + SHORT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_model_and_optimiser_can_be_made(path: Path) -> None:
    config = read_config(path)
    with torch.device("meta"):
        model = make_model(config, dataset_like(config.data.source))
        optimiser = make_optimiser(model, config.optim)
        logits = model(torch.zeros(2, *SHAPES[config.data.source]))
    assert logits.shape == (2, 100 if config.data.source == "cifar100" else 10)
    held = sum(p.numel() for group in optimiser.param_groups for p in group["params"])
    assert held == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("path", FAST, ids=lambda path: path.stem)
def test_a_fast_recipe_trains_the_papers_network_for_a_tenth_of_the_epochs(path: Path) -> None:
    fast, paper = read_config(path), read(path.stem)
    assert fast.epochs * 10 == paper.epochs
    assert (fast.data.source, fast.data.preprocess, fast.data.validation) == (paper.data.source, "paper", None)
    sizes = []
    for config in (fast, paper):
        with torch.device("meta"):
            sizes.append(sum(p.numel() for p in make_model(config, dataset_like(config.data.source)).parameters()))
    assert sizes[0] == sizes[1]
    assert fast.model.name == paper.model.name


@pytest.mark.parametrize("path", SHORT, ids=lambda path: path.stem)
def test_a_short_recipe_trains_the_papers_network_for_at_most_150_minutes(path: Path) -> None:
    """If the networks have become faster, measure them again: python benchmarks/epoch_seconds.py."""
    short, paper = read_config(path), read(path.stem)
    measured = json.loads((FOLDER.parent / "results" / "benchmarks" / "epoch-seconds.json").read_text())
    assert short.epochs * measured["rows"][path.stem]["seconds_per_epoch"] <= 60 * measured["minutes"] == 9000
    assert (short.data.source, short.data.preprocess, short.data.validation) == (paper.data.source, "paper", None)
    assert short.model.name == paper.model.name
    assert paper.loss in (short.loss, "cross-entropy")
    assert short.companion.hidden_layers == paper.companion.hidden_layers
    assert short.schedule.name == "one-cycle"
    assert short.epochs <= read_config(f"fast/{path.stem}").epochs


def test_every_row_has_a_short_recipe() -> None:
    assert [path.stem for path in SHORT] == [path.stem for path in FAST]


@pytest.mark.parametrize("path", FILES + FAST + SHORT, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_configuration_says_where_its_settings_come_from(path: Path) -> None:
    comment = " ".join(line for line in path.read_text().splitlines() if line.startswith("#"))
    assert any(word in comment for word in ("author", "Inferred", "Ours", "ours")), comment


@pytest.mark.parametrize("name", AUTHORS)
def test_settings_are_those_of_the_authors_code(name: str) -> None:
    config, expected = read(name), AUTHORS[name]
    optim = config.optim
    assert (optim.name, optim.momentum, optim.nesterov, config.batch_size) == ("sgd", 0.9, True, 100)
    assert (optim.weight_decay, optim.bias_lr, optim.classifier_decay) == (0.001, 2.0, 10.0)
    assert (optim.lr, config.epochs) == (expected["lr"], expected["epochs"])
    assert (config.schedule.name, config.schedule.factor) == ("multistep", 0.1)
    assert config.schedule.milestones == expected["milestones"]
    assert config.data.preprocess == "paper"
    cifar = config.data.source.startswith("cifar")
    assert (config.data.augment.pad, config.data.augment.mirror) == ((8, True) if cifar else (0, False))
    with torch.device("meta"):
        model = make_model(config, dataset_like(config.data.source))
    assert sum(p.numel() for p in model.parameters()) == expected["parameters"]
    assert model.config.gate_bias == expected["bias"]


@pytest.mark.parametrize(
    "name",
    ["highway-a", "highway-b", "highway-c", "fitnet-a", "fitnet-b", "fitnet-a-hints", "fitnet-b-hints", "maxout"],
)
def test_networks_of_table_2_are_trained_like_those_of_table_3(name: str) -> None:
    config, other = read(name), read("highway-19-nin-cifar10")
    assert (config.optim, config.schedule, config.data) == (other.optim, other.schedule, other.data)
    assert (config.epochs, config.batch_size) == (other.epochs, other.batch_size)


@pytest.mark.parametrize("name", ["resnet-110", "highway-110"])
def test_the_110_layer_pair_has_one_recipe(name: str) -> None:
    config = read(name)
    assert (config.optim.lr, config.optim.weight_decay, config.batch_size) == (0.1, 1e-4, 128)
    assert (config.epochs, config.schedule.milestones) == (200, (100, 150))
    assert (config.optim.bias_decay, config.optim.momentum, config.optim.nesterov) == (1.0, 0.9, False)
    assert config.schedule.first_epoch == (0.1 if name == "resnet-110" else 1.0)
    black = fit_arrays(torch.zeros(1, 3, 1, 1, dtype=torch.uint8), config.data.preprocess)(
        torch.zeros(1, 3, 1, 1, dtype=torch.uint8)
    )
    assert config.data.augment.fill == pytest.approx(black.flatten().tolist(), abs=1e-6)


@pytest.mark.parametrize("depth", [10, 20, 50, 100, 1000])
def test_deeper_highways_start_with_gates_more_shut(depth: int) -> None:
    config = read(f"highway{depth}-mnist")
    biases = {10: -1.0, 20: -2.0, 50: -3.0, 100: -4.0, 1000: -7.0}
    assert (config.model.depth, config.model.gate_bias) == (depth, biases[depth])
    with torch.device("meta"):
        assert create_model("highway-mlp", **config.model.overrides()).config.width == 50


RECORDED = Path(__file__).parent / "configs.json"


def resolved(name: str) -> dict[str, Any]:
    """The settings of a configuration and of the files it extends that differ from the defaults."""
    search = "search" in name or name.startswith("fig1/")
    values = dotted(read_search(name).as_dict() if search else to_dict(read_config(name)))
    defaults = dotted(to_dict(complete_config(TrainConfig())))
    return {key: value for key, value in values.items() if key not in defaults or defaults[key] != value}


def test_every_configuration_has_the_settings_it_was_recorded_with() -> None:
    """A change to a file that others extend shows here in all of them.

    If it is meant, record the settings again: python tests/training/test_configs.py
    """
    assert {name: resolved(name) for name in list_configs()} == json.loads(RECORDED.read_text())


def test_configurations_extend_only_what_is_installed_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel has the folder under another name, without the repository around it."""
    before = {name: resolved(name) for name in list_configs()}
    shutil.copytree(FOLDER, tmp_path / "_configs")
    monkeypatch.setattr("verydeep.config._read._CHECKOUT", tmp_path / "nowhere")
    monkeypatch.setattr("verydeep.config._read._INSTALLED", tmp_path / "_configs")
    assert config_folder() == tmp_path / "_configs"
    assert find_config("fast/highway-a").is_relative_to(tmp_path)
    assert {name: resolved(name) for name in list_configs()} == before


def test_a_file_holds_only_what_differs_from_the_one_it_extends() -> None:
    for path in FOLDER.rglob("*.toml"):
        own = tomllib.loads(path.read_text())
        if (other := own.pop("extends", None)) is not None:
            base, mine = dotted(read_settings(path.parent / other)), dotted(own)
            assert mine or path.parent.name == "short", path  # a fast recipe may be short as it is
            assert not {key for key, value in mine.items() if base.get(key) == value}, path


if __name__ == "__main__":
    lines = (f" {json.dumps(name)}: {json.dumps(resolved(name))}" for name in list_configs())
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
