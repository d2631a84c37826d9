"""Every example of the README and the documentation runs, in order, in an empty folder with a reader's files."""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_wine  # type: ignore[import-untyped]

from verydeep.cli import COMMANDS
from verydeep.cli._console import console
from verydeep.cli._options import settings_of
from verydeep.data import DataConfig
from verydeep.training import ModelConfig, Run, TrainConfig, train

from ._examples import MARKERS, blocks, examples, marker, quick_form
from ._pages import PAGES, ROOT

MARKED = 27  # blocks that are not run; make it smaller when one is
PRINTED = {  # what a page says that its examples print
    "layers": ["[-2.3, -4.0, -7.0]", "-7.01", "torch.Size([100, 8, 50])", "torch.Size([4, 16])"],
    "residual": [
        "['transformer.h.0', 'transformer.h.1', 'transformer.h.2', 'transformer.h.3']",
        "['transformer.h.0.attn', 'transformer.h.0.mlp']",
        "shape 'blocks.3' cannot be closed: it turns (2, 16, 32, 32) into (2, 32, 16, 16)",
    ],
    "training-in-python": ["Run('runs/from-python', 3 of 3 epochs, test accuracy "],
}
WITH_BLOCKS = [page for page in PAGES if any(language in ("python", "toml", "bash") for language, _ in blocks(page))]
MODEL = """
import torch
from torch import nn

class Residual(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)

def build():
    torch.manual_seed(0)
    blocks = [Residual(nn.LayerNorm(16), nn.Linear(16, 16), nn.Tanh()) for _ in range(3)]
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), *blocks, nn.Linear(16, 10))
"""


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, in place of the network that comes with verydeep."""
    config = TrainConfig(
        DataConfig("digits", validation=0.2), ModelConfig("highway-mlp", depth=4), epochs=1, batch_size=200
    )
    return train(config, tmp_path_factory.mktemp("quick") / "highway50-mnist", progress=False).path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_run: Path) -> Iterator[Path]:
    """The folder of a reader: tables and images of their own, and a model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "width", 120)  # as wide as the pages, whatever the terminal of the tests
    threads = torch.get_num_threads()  # an example may change it
    monkeypatch.setenv("QUICK_RUN", os.path.relpath(quick_run, tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "model", raising=False)
    shutil.copytree(quick_run, "runs/depth-digits/network")  # what ten minutes would have made
    wine = load_wine()
    columns = ",".join([*wine.feature_names, "cultivar"])
    np.savetxt("wine.csv", np.column_stack([wine.data, wine.target]), "%g", ",", header=columns, comments="")
    Path("model.py").write_text(MODEL)
    random = np.random.default_rng(0)
    for name in ("cats", "dogs"):
        Path("photos", name).mkdir(parents=True)
        for number in range(12):
            Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(f"photos/{name}/{number}.png")
    yield tmp_path
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.stem)
def test_the_examples_run(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if page.stem in ("README", "residual"):
        _save_language_model(folder)
    names: dict[str, Any] = {}
    for example in examples(page):
        names = example.namespace
        try:
            example.evaluate()
        except Exception as error:
            error.add_note(f"in {page.relative_to(ROOT)}, line {example.line}")
            raise
    printed = capsys.readouterr().out
    text = page.read_text()
    for words in PRINTED.get(page.stem, ()):
        assert words in text
        assert words in printed
    if page.parent.name == "tutorials":
        assert _not_printed(page, printed) == []
    if page.stem in CHECKS:
        CHECKS[page.stem](folder, printed, names)


def _not_printed(page: Path, printed: str) -> list[str]:
    """The lines of output that a page shows and its examples no longer print, whatever the numbers are.

    The output of a block that is not run cannot be compared, nor the answer about depth, which the quick form may not
    find. Three dots stand for what is left out.
    """
    wanted, before = [], ""
    for language, text in blocks(page):
        if language == "text" and marker(before) is None and "verydeep depth" not in before:
            wanted += [part for line in text.splitlines() for part in line.split("...")]
        before = text
    return [part for part in wanted if _without_numbers(part) not in _without_numbers(printed)]


def _without_numbers(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"-?\d[\d,.]*(e-\d+)?", "#", text.replace("┃", "│"))).strip()


def _save_language_model(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    text = "the cat sat on the mat and the dog sat on the log . " * 40
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.train_from_iterator([text], trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"]))
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", model_max_length=32)
    sizes: dict[str, Any] = {
        "n_positions": 32,
        "n_layer": 3,
        "n_embd": 16,
        "n_head": 2,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    model: Any = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes))
    model.save_pretrained(folder / "gpt2")
    tokenizer.save_pretrained(folder / "gpt2")
    (folder / "book.txt").write_text(text)


def _readme(folder: Path, _printed: str, _names: dict[str, Any]) -> None:
    assert json.loads((folder / "runs" / "depth-wine" / "depth.json").read_text())["network"]["test_score"] > 0.9
    assert len((folder / "predictions.csv").read_text().splitlines()) == 179
    (evaluation,) = folder.glob("runs/highway-mlp-wine-1/eval/*/evaluation.json")
    assert json.loads(evaluation.read_text())["accuracy"] > 0.9


def _search(folder: Path, printed: str, _names: dict[str, Any]) -> None:
    best = _loss(folder / "runs" / "best")
    assert f" {best}\n" in printed  # that of the same search in Python
    assert best == min(_loss(path) for path in (folder / "runs" / "flowers" / "trials").iterdir())


def _loss(path: Path) -> float:
    measured = Run.load(path).measured
    assert measured is not None
    assert measured.valid_loss is not None
    return measured.valid_loss


def _depth(folder: Path, _printed: str, _names: dict[str, Any]) -> None:
    assert (folder / "depth.png").exists()
    for name in ("depth.html", "depth.json", "network", "plan.json"):
        assert (folder / "runs" / "small" / name).exists()


def _own_data(_folder: Path, _printed: str, names: dict[str, Any]) -> None:
    assert names["data"].classes == ("setosa", "versicolor", "virginica")


def _batches(_folder: Path, _printed: str, names: dict[str, Any]) -> None:
    assert names["inputs"].classes == ("setosa", "versicolor", "virginica")
    assert names["data"].train.x.shape == (50, 3, 64, 64)


def _predictions(_folder: Path, printed: str, _names: dict[str, Any]) -> None:
    """The price of the same row, by `run.predict` and by onnxruntime."""
    prices = [float(number) for number in re.findall(r"^\[+\s*(\d+\.\d+)", printed, flags=re.M)]
    assert len(prices) == 2
    assert prices[0] == pytest.approx(prices[1], rel=1e-4)


def _sklearn(folder: Path, printed: str, _names: dict[str, Any]) -> None:
    (accuracy, *_) = re.findall(r"^([\d.]+)% on test data", printed, flags=re.M)
    assert float(accuracy) > 85
    (rents,) = re.findall(r"^\[ *(\d+)\.\d* +(\d+)\.\d*\]$", printed, flags=re.M)
    assert 400 < float(rents[0]) < 600 < float(rents[1])
    assert [path.name for path in (folder / "runs").iterdir()] == ["depth-digits"]  # estimators leave no files


CHECKS = {
    "README": _readme,
    "batches": _batches,
    "depth": _depth,
    "own-data": _own_data,
    "predictions": _predictions,
    "searching": _search,
    "sklearn": _sklearn,
}


def test_no_more_blocks_are_left_out() -> None:
    marked = [text for page in PAGES for _, text in blocks(page) if marker(text)]
    assert len(marked) <= MARKED
    assert {marker(text) for text in marked} <= set(MARKERS)


def test_every_block_says_its_language() -> None:
    languages = {language for page in PAGES for language, _ in blocks(page)}
    assert languages == {"python", "toml", "bash", "text"}
    assert not [
        page for page in PAGES for language, text in blocks(page) if language == "text" and "verydeep " in text[:9]
    ]


def test_commands_and_options_exist_also_in_blocks_that_are_not_run() -> None:
    lines = 0
    for page in PAGES:
        text = "".join(text for language, text in blocks(page) if language == "bash").replace("\\\n", " ")
        for line in re.findall(r"^(?:.*-m )?verydeep (\S.*)$", text, flags=re.M):
            command, *words = shlex.split(line, comments=True)
            assert command in COMMANDS, f"{page.name}: {line}"
            options = import_module(f"verydeep.cli.commands._{command}").OPTIONS
            chosen = options.get(f"{command} {words[0]}" if words else command) or options.get(command)
            known = {name for setting in settings_of(chosen) for name in setting.names} if chosen else set()
            given = {word.partition("=")[0].replace("--no-", "--") for word in words if word.startswith("--")}
            assert given <= known | {"--help"}, f"{page.name}: {line}"
            lines += 1
        named = set(re.findall(r"`verydeep ([a-z]+)", page.read_text())) - {"help"}
        assert named <= set(COMMANDS), page.name
    assert lines > 60


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    named = {
        name for page in [*PAGES, ROOT / "CONTRIBUTING.md"] for name in re.findall(r"`make ([a-z-]+)", page.read_text())
    }
    assert {"docs", "test"} <= named <= targets


def test_quick_forms_keep_what_a_command_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUICK_RUN", "small")
    assert quick_form(["train", "wine.csv", "--target", "cultivar"]) == ["train", "wine.csv", "--target", "cultivar"]
    assert quick_form(["explore", "pretrained:highway50-mnist"]) == ["explore", "small", "--no-open"]
    assert quick_form(["depth", "a.csv", "--minutes", "30"])[:2] == ["depth", "a.csv"]
    assert "--minutes" not in quick_form(["depth", "a.csv", "--minutes", "30"])
    assert quick_form(["train", "highway50-mnist", "--lr", "0.1", "--epochs", "20"])[:4] == [
        "train", "highway50-mnist", "--lr", "0.1",
    ]  # fmt: skip
