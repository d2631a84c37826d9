"""`verydeep analyze` for networks that are not runs, and for runs without highway layers."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

from verydeep.cli import main
from verydeep.cli._other_models import load_checkpoint
from verydeep.data import DataConfig
from verydeep.processes import python_command
from verydeep.training import ModelConfig, TrainConfig, train

TEXT = "the cat sat on the mat and the dog sat on the log . " * 60
NAMED = "roberta.encoder.layer.*"
SPECIAL = ["[PAD]", "[MASK]", "[UNK]"]
MODULE = """
import torch
from torch import nn
from verydeep.objectives import Classification

class Residual(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)

def make():
    torch.manual_seed(0)
    blocks = [Residual(nn.LayerNorm(16), nn.Linear(16, 16), nn.Tanh()) for _ in range(3)]
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), *blocks, nn.Linear(16, 10))

def plain():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))

def with_batches():
    return make(), [(torch.randn(6, 64), torch.arange(6)) for _ in range(3)], Classification()

class Wider(nn.Sequential):
    def forward(self, x):
        return x.repeat(1, 2) + super().forward(x)

def changing_shape():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), Wider(nn.Linear(8, 16)), *make()[2:])

def nothing():
    return 3
"""


RAISES = """
import sys
import torch
from verydeep.nn import HighwayStack
def raises():
    raise RuntimeError("no weights")
def leaves():
    sys.exit(3)
def lines():
    raise ValueError("first\\n  second")
class CannotRun(torch.nn.Module):
    def forward(self, x):
        raise ValueError("no forward")
class Late(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Flatten(), HighwayStack(64, 2), torch.nn.Linear(64, 10))
    def forward(self, x):
        return self.layers({2: x}[len(x)])
class NotFinite(torch.nn.Sequential):
    def forward(self, x):
        return super().forward(x) * float("nan")
def cannot_run():
    return CannotRun()
def late():
    return Late()
def wrong_objective():
    return Late(), [(torch.randn(2, 64), torch.arange(2))], "accuracy"
def failing_objective():
    from verydeep.objectives import Classification
    class Failing(Classification):
        def losses(self, outputs, y):
            return outputs[:, 99]
        def loss(self, outputs, y):
            return self.losses(outputs, y).sum()
    return HighwayStack(64, 2), [(torch.randn(2, 64), torch.arange(2))], Failing()
def not_finite():
    return NotFinite(torch.nn.Flatten(), HighwayStack(64, 2), torch.nn.Linear(64, 10))
"""


KERNELS = """
class Anything(dict):
    def __init__(self, *_, **__):
        pass
    def __call__(self, decorated):
        return decorated
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "get_kernel":
        return lambda *_, **__: open("fetched", "w").close()
    return Anything
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "own.py").write_text(MODULE)
    return tmp_path


def tokenizer() -> Any:
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.train_from_iterator([TEXT], trainers.WordLevelTrainer(special_tokens=SPECIAL))
    make: Any = PreTrainedTokenizerFast
    return make(tokenizer_object=words, pad_token="[PAD]", mask_token="[MASK]", unk_token="[UNK]", model_max_length=32)


def checkpoint(path: Path, masked: bool = False, vocabulary: int | None = None) -> Path:
    torch.manual_seed(0)
    words = tokenizer()
    sizes: dict[str, Any] = {"max_position_embeddings": 32, "num_hidden_layers": 3}
    sizes["vocab_size"] = vocabulary or len(words)
    sizes |= {"hidden_size": 16, "num_attention_heads": 2, "bos_token_id": 0, "eos_token_id": 0}
    model: Any = BertForMaskedLM(BertConfig(**sizes)) if masked else GPT2LMHeadModel(GPT2Config(**sizes))
    model.save_pretrained(path)
    words.save_pretrained(path)
    return path


def summary(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "summary.json").read_text()))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return int(code or 0), out, err


def test_a_checkpoint_on_disk_is_measured_on_a_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint(folder / "gpt2")
    arguments = ("analyze", "--hf", "gpt2", "--text", "text.txt", "--context", "16", "--tolerance", "5%")
    capsys.readouterr()
    code, out, errors = run(capsys, *arguments)
    assert code == 0
    assert errors == ""  # no progress bar where nobody watches
    assert "of the second half of text.txt, sequences of 16 tokens" in " ".join(out.split())
    found = summary(folder / "analysis")
    assert [row["layer"] for row in found["lesions"]] == [f"transformer.h.{n}" for n in range(3)]
    assert found["hf"] == "gpt2"
    assert found["report"] == "analysis/report.html"
    page = (folder / "analysis" / "report.html").read_text()
    assert re.search(r"in an order selected on \d+ samples of the first half of text.txt", page)
    both = (
        r"The full network has token accuracy .*% on these samples, and token accuracy .*% on \d+ samples of text.txt"
    )
    assert re.search(both, page)
    assert "--tolerance 5% --level sublayer --out analysis-parts" in page
    assert "--tolerance 5% --pairs" in page
    assert found["threads"] >= 1
    assert {"lesions.png", "usage.png", "flow.png", "lesions.npz"} <= {p.name for p in (folder / "analysis").iterdir()}
    code, out, _ = run(
        capsys,
        "analyze",
        "--hf",
        "gpt2",
        "--text",
        "text.txt",
        "--only",
        "lesions",
        "--level",
        "sublayer",
        "--out",
        "b",
    )
    assert len(summary(folder / "b")["lesions"]) == 6


def test_a_text_of_few_sequences_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint(folder / "gpt2")
    (folder / "short.txt").write_text("the cat sat on the mat " * 25)
    arguments = ("analyze", "--hf", "gpt2", "--text", "short.txt")
    capsys.readouterr()
    code, _, errors = run(capsys, *arguments, "--context", "16")
    assert code == 2
    assert errors == (
        "verydeep: --text short.txt: 150 tokens make 9 sequences of 16 tokens, and at least 10 are needed; "
        "give a longer text, or a smaller --context\n"
    )
    assert run(capsys, *arguments, "--context", "15", "--only", "lesions")[0] == 0
    assert run(capsys, *arguments, "--context", "15", "--samples", "9")[0] == 2


def test_a_masked_language_model_needs_the_names_of_its_layers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint(folder / "bert", masked=True)
    arguments = ("analyze", "--hf", "bert", "--text", "text.txt")
    _, _, note = run(capsys, *arguments)
    assert "only the signal flow" in note
    assert "3 blocks cannot be closed (the sum is normalised; name such layers to leave them out)" in note
    command = "verydeep analyze --hf bert --text text.txt --blocks &#39;bert.encoder.layer.*&#39; --out analysis-named"
    assert command in (folder / "analysis" / "report.html").read_text()
    assert "--blocks, such as 'bert.encoder.layer.*'" in note
    run(capsys, *arguments, "--blocks", "bert.encoder.layer.*", "--only", "lesions", "--out", "named")
    assert len(summary(folder / "named")["lesions"]) == 3


def test_the_longest_sequence_of_roberta_is_shorter_than_its_positions(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = tokenizer()
    sizes: dict[str, Any] = {"vocab_size": len(words), "max_position_embeddings": 34, "num_hidden_layers": 2}
    RobertaForMaskedLM(RobertaConfig(**sizes, hidden_size=16, num_attention_heads=2)).save_pretrained("roberta")
    words.save_pretrained("roberta")
    arguments = ("analyze", "--hf", "roberta", "--text", "text.txt", "--only", "lesions", "--blocks", NAMED)
    capsys.readouterr()
    assert run(capsys, *arguments)[0] == 0
    assert "sequences of 32 tokens, 15% of which are masked" in (folder / "analysis" / "report.html").read_text()
    code, _, errors = run(capsys, *arguments, "--context", "33")
    assert code == 2
    assert "at most 32, which the model takes" in errors


def test_a_long_text_is_tokenised_in_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(folder / "gpt2")
    (folder / "lines.txt").write_text("the cat sat on the mat .\n" * 100)
    for name in ("text.txt", "lines.txt"):
        expected = load_checkpoint(folder / "gpt2", folder / name, 16, None)
        with monkeypatch.context() as patch:
            patch.setattr("verydeep.cli._other_models._PIECE", 60)
            found = load_checkpoint(folder / "gpt2", folder / name, 16, None)
        first, second = ([*cast("list[Tensor]", each.data)] for each in (expected, found))
        assert torch.equal(torch.cat(first), torch.cat(second))


def test_threads_are_as_many_as_cores_are_free(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verydeep.training._threads.idle_cores", lambda: 0.4)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        options = ("--data", "digits", "--samples", "50", "--only", "flow")
        assert run(capsys, "analyze", "--model", "own.py:make", *options)[0] == 0
        assert summary(folder / "analysis")["threads"] == 1
        assert run(capsys, "analyze", "--model", "own.py:make", *options, "--threads", "2")[0] == 0
        assert summary(folder / "analysis")["threads"] == 2
    finally:
        torch.set_num_threads(before)


def test_a_model_of_ones_own_is_measured_on_data_or_on_its_batches(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = run(capsys, "analyze", "--model", "own.py:make", "--data", "digits", "--samples", "200", "--pairs")
    assert code == 0
    assert [row["layer"] for row in summary(folder / "analysis")["lesions"]] == ["2", "3", "4"]
    assert (folder / "analysis" / "pairs.npz").exists()
    run(capsys, "analyze", "--model", "own.py:with_batches", "--only", "lesions", "--out", "b")
    assert len(summary(folder / "b")["lesions"]) == 3


def test_a_network_with_nothing_to_close_shows_its_signal_flow_and_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, note = run(capsys, "analyze", "--model", "own.py:plain", "--data", "digits", "--samples", "50")
    assert code == 0
    assert "only the signal flow can be measured" in note
    assert (folder / "analysis" / "flow-1.npz").exists()
    assert not (folder / "analysis" / "lesions.npz").exists()
    assert "No block of this network can be closed" in (folder / "analysis" / "report.html").read_text()


def test_blocks_that_cannot_be_closed_are_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--data", "digits", "--samples", "50", "--only", "lesions")
    code, out, note = run(capsys, "analyze", "--model", "own.py:changing_shape", *options)
    assert code == 0
    assert "analysis/report.html: " in out
    page = (folder / "analysis" / "report.html").read_text()
    assert "1 block cannot be closed (the output has another shape than the input): 2." in page
    assert "verydeep analyze --model own.py:changing_shape --data digits --samples 50 --only lesions" in page
    assert "verydeep: 1 block cannot be closed (the output has another shape than the input): 2\n" in note
    refused = summary(folder / "analysis")["refused"]
    assert [(each["name"], each["reason"]) for each in refused] == [("2", "shape")]


@pytest.mark.slow
def test_runs_without_highway_layers_are_analysed_as_far_as_possible(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = DataConfig("digits")
    train(TrainConfig(data=data, model=ModelConfig("plain-mlp", depth=3, width=8), epochs=1), "plain")
    code, _, note = run(capsys, "analyze", "plain")
    assert code == 0
    assert "nothing to close" in note
    assert (folder / "plain" / "analysis" / "flow-1.npz").exists()
    train(TrainConfig(data=data, model=ModelConfig("resnet-110", blocks=2), epochs=1), "residual")
    code, out, note = run(capsys, "analyze", "residual", "--samples", "100")
    assert code == 0
    assert "no gates" in note
    assert "2 blocks cannot be closed (the output has another shape than the input): blocks.2, blocks.4" in note
    assert "Layers used" in out
    assert len(summary(folder / "residual" / "analysis")["lesions"]) == 4
    assert run(capsys, "prune", "residual", "--tolerance", "90%", "--samples", "100")[0] == 0
    assert run(capsys, "report", "residual")[0] == 0


def configured(path: Path, masked: bool = False, **settings: object) -> None:
    """A checkpoint with other settings in its config.json."""
    file = checkpoint(path, masked) / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


@pytest.mark.slow
def test_no_code_that_a_checkpoint_names_is_fetched(folder: Path) -> None:
    configured(folder / "hub", _attn_implementation="someone/attention")
    (folder / "packages" / "kernels-0.18.2.dist-info").mkdir(parents=True)
    (folder / "packages" / "kernels-0.18.2.dist-info" / "METADATA").write_text("Name: kernels\nVersion: 0.18.2\n")
    (folder / "packages" / "kernels.py").write_text(KERNELS)
    command = python_command("-m", "verydeep", "analyze", "--hf", "hub", "--text", "text.txt")
    environment = {**os.environ, "PYTHONPATH": str(folder / "packages")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert not (folder / "fetched").exists()
    assert done.returncode == 2
    assert "config.json names code to download, 'someone/attention'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one network, RUN, --model FILE.py:FUNCTION or --hf FOLDER"),
        (("runs/first", "--hf", "gpt2"), "got RUN and --hf"),
        (("--hf", "gpt2"), "--text FILE"),
        (("--hf", "nowhere", "--text", "text.txt"), "a folder with a config.json"),
        (("--hf", "pickled", "--text", "text.txt"), "only .safetensors files are loaded"),
        (("--hf", "pickled", "--text", "none.txt"), "cannot be read: No such file"),
        (("--model", "own.py"), "such as model.py:build"),
        (("--model", "own.py:missing"), "has no function 'missing'"),
        (("--model", "own.py:nothing"), "must return a torch module"),
        (("--model", "own.py:make"), "--data PATH_OR_NAME"),
        (("--model", "broken.py:make"), "fails with SyntaxError"),
        (("--model", "raises.py:raises"), "raises() fails with RuntimeError: no weights (line 6)"),
        (("--model", "raises.py:leaves"), "leaves() fails with SystemExit: 3 (line 8)"),
        (("--model", "raises.py:lines"), "lines() fails with ValueError: first second (line 10)"),
        (("--model", "leaves.py:make"), "leaves.py fails with SystemExit: 3"),
        (("--model", "raises.py:late", "--data", "digits"), "fails on samples of shape (1, 8, 8): KeyError: "),
        (("--model", "raises.py:wrong_objective"), "an object such as Classification(); got 'accuracy'"),
        (("--model", "raises.py:failing_objective"), "the objective Failing fails with IndexError: index 99 is out of"),
        (("--model", "own.py:make", "--data", "digits", "--only", "gates"), "--only gates: this Sequential has no"),
        (("--model", "own.py:make", "--data", "digits", "--context", "8"), "--context has no effect"),
        (
            ("--model", "own.py:with_batches", "--samples", "3"),
            "returns data itself, of which all is used; leave out --s",
        ),
        (("--model", "own.py:with_batches", "--split", "test"), "leave out --split"),
        (("--hf", "gpt2", "--text", "text.txt", "--beside", "runs/first"), "--beside has no effect"),
        (("--hf", "shorter", "--text", "text.txt"), "24 tensors of this GPT2LMHeadModel are not in the checkpoint"),
        (("--hf", "wider", "--text", "text.txt"), "has shape (48,) in the checkpoint, but (96,) according to config"),
        (("--hf", "few", "--text", "text.txt"), "but the model only has tokens 0 to 4"),
        (("--hf", "seeing", "--text", "text.txt"), "depend on the tokens that follow, so it is no causal"),
        (("--model", "raises.py:cannot_run", "--data", "digits"), "fails on samples of shape (1, 8, 8): no forward"),
        (("--model", "raises.py:not_finite", "--data", "digits"), "loss of this network on these samples is nan"),
        (("--hf", "untokenised", "--text", "text.txt"), "there is no tokeniser in it"),
        (("--hf", "damaged", "--text", "text.txt"), "cannot be loaded as a language model"),
        (("--hf", "typed", "--text", "text.txt"), "cannot be loaded as a language model: Validation error"),
        (("--hf", "deep", "--text", "text.txt"), "at most 100,000 hidden layers, got '1000000000'"),
        (("--model", "own.py:with_batches", "--data", "digits"), "leave out --data"),
    ],
)
def test_mistakes_get_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    (folder / "broken.py").write_text("def make(:\n")
    (folder / "raises.py").write_text(RAISES)
    checkpoint(folder / "damaged")
    (folder / "damaged" / "model.safetensors").write_bytes(b"no header")
    (folder / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    configured(folder / "shorter", n_layer=5)
    configured(folder / "wider", n_embd=32)
    checkpoint(folder / "few", vocabulary=5)
    configured(folder / "seeing", masked=True, architectures=["BertForPreTraining"])
    configured(folder / "typed", vocab_size="x")
    configured(folder / "deep", n_layer=10**9)
    checkpoint(folder / "untokenised")
    for file in (folder / "untokenised").glob("tokenizer*"):
        file.unlink()
    (folder / "pickled").mkdir()
    (folder / "pickled" / "config.json").write_text("{}")
    (folder / "pickled" / "pytorch_model.bin").write_bytes(b"cposix\nsystem\n")
    code, _, error = run(capsys, "analyze", *arguments)
    assert code == 2
    assert message in " ".join(error.split())
