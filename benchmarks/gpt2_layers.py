"""Which layers of a small GPT-2 matter, and which half to keep: `python benchmarks/gpt2_layers.py`.

Trains a GPT-2 of 8 layers with transformers' own classes on the sources of Python's standard library, with a tokeniser
of its own, for a given time. Then it measures the perplexity on held-out files with each layer and each part of a layer
closed, and with half of the layers removed, chosen in three ways: greedily by the loss on validation files (ours), the
middle half, and the layers whose output is most similar to their input. Random halves stand beside them.

Killed at any time, it continues where it was, in training and in measuring. `--minutes` counts the processor time of
training in all calls together, so that other load on the machine costs no steps; a larger number continues a finished
training. Measuring takes about a quarter of an hour more.
"""

import argparse
import json
import math
import os
import random
import sysconfig
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from _result import write_result
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from verydeep.analysis import Progress, Score, evaluate_model, find_blocks, greedy_lesions, lesion_study, prune
from verydeep.cli.views._bar import progress_bar
from verydeep.files import write_atomic
from verydeep.objectives import CausalLanguageModel

ROOT = Path(__file__).parents[1]
OBJECTIVE = CausalLanguageModel()
LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "encodings", "pydoc_data", "__pycache__"}
SAVE_EVERY = 60  # seconds
RANDOM_HALVES = 10
MEASURED = 16  # sequences per batch
COLOURS = ("#0072B2", "#D55E00", "#009E73")  # of Okabe and Ito, which the colour-blind can tell apart


@dataclass(frozen=True)
class Settings:
    """What is trained; results depend on nothing else but the time."""

    layers: int = 8
    width: int = 256
    heads: int = 4
    context: int = 256
    vocabulary: int = 4000
    batch: int = 8
    lr: float = 1e-3
    warmup: float = 0.02  # of the time
    weight_decay: float = 0.1
    seed: int = 0


def read_options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=45.0, help="processor time for training, in all")
    options.add_argument("--folder", type=Path, default=ROOT / "runs" / "gpt2-layers", help="checkpoints")
    options.add_argument("--out", type=Path, default=ROOT / "results" / "gpt2_layers.json")
    options.add_argument("--picture", type=Path, default=ROOT / "docs" / "images" / "gpt2-layers.png")
    options.add_argument("--samples", type=int, default=160, help="sequences to measure on")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--bfloat16", action="store_true", help="train in bfloat16 where torch's autocast does")
    return options.parse_args()


def corpus() -> dict[str, list[str]]:
    """The texts of the standard library's files: of every twenty, one for validation, one for the test."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(p for p in library.rglob("*.py") if not LEFT_OUT & set(p.relative_to(library).parts))
    random.Random(0).shuffle(files)
    texts: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    for number, file in enumerate(files):
        split = {0: "valid", 1: "test"}.get(number % 20, "train")
        texts[split].append(file.read_text(encoding="utf-8", errors="replace"))
    return texts


def prepare(folder: Path, settings: Settings) -> dict[str, Tensor]:
    """The tokens of each split, from a tokeniser that is trained on the training files; both are kept."""
    stored = folder / "tokens.safetensors"
    if not stored.exists():
        texts = corpus()
        words = Tokenizer(models.BPE())
        words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
        words.decoder = decoders.ByteLevel()  # type: ignore[assignment]
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=settings.vocabulary, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
        )
        words.train_from_iterator(texts["train"], trainer)
        tokens = {}
        for split, parts in texts.items():
            ids = [token for encoding in words.encode_batch(parts) for token in (*encoding.ids, 0)]
            tokens[split] = torch.tensor(ids, dtype=torch.int32)
        folder.mkdir(parents=True, exist_ok=True)
        words.save(str(folder / "tokenizer.json"))
        save_file(tokens, str(stored) + ".new")
        Path(str(stored) + ".new").replace(stored)
    return load_file(stored)


def build(settings: Settings) -> GPT2LMHeadModel:
    torch.manual_seed(settings.seed)
    return GPT2LMHeadModel(
        GPT2Config(
            n_layer=settings.layers,
            n_embd=settings.width,
            n_head=settings.heads,
            n_positions=settings.context,
            vocab_size=settings.vocabulary,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


class Training:
    """A model, its optimiser and how far it is; all of it on disk once a minute."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        self.model = build(settings)
        matrices = [p for p in self.model.parameters() if p.dim() > 1]
        others = [p for p in self.model.parameters() if p.dim() <= 1]
        groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, settings.lr, (0.9, 0.95))
        self.progress: dict[str, Any] = {"seconds": 0.0, "steps": 0, "loss": math.log(settings.vocabulary)}
        if (folder / "progress.json").exists():
            self._load()

    def _state_file(self, steps: int) -> Path:
        return self.folder / f"state-{steps}.safetensors"

    def _load(self) -> None:
        self.progress = json.loads((self.folder / "progress.json").read_text())
        if self.progress["settings"] != asdict(self.settings):
            raise SystemExit(f"{self.folder} was trained with other settings; give another --folder")
        tensors = load_file(self._state_file(self.progress["steps"]))
        named = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, parameter in named.items():
                parameter.copy_(tensors[f"model/{name}"])
                if self.progress["steps"]:
                    self.optimizer.state[parameter] = {
                        key: tensors[f"{key}/{name}"] for key in ("step", "exp_avg", "exp_avg_sq")
                    }

    def save(self) -> None:
        tensors = {}
        for name, parameter in self.model.named_parameters():
            tensors[f"model/{name}"] = parameter.detach().clone()
            tensors |= {f"{key}/{name}": value.clone() for key, value in self.optimizer.state[parameter].items()}
        file = self._state_file(self.progress["steps"])
        save_file(tensors, str(file) + ".new")
        Path(str(file) + ".new").replace(file)
        content = self.progress | {"settings": asdict(self.settings)}
        write_atomic(self.folder / "progress.json", json.dumps(content, indent=1) + "\n")
        for other in self.folder.glob("state-*.safetensors"):
            if other != file:
                other.unlink()

    def run(self, tokens: Tensor, seconds: float, bfloat16: bool) -> None:
        """Train until this time has been spent in all; the learning rate rises, then falls to 0 at the end."""
        settings, saved = self.settings, time.perf_counter()
        self.model.train()
        while self.progress["seconds"] < seconds:
            began = time.process_time()
            share = self.progress["seconds"] / seconds
            rate = settings.lr * min(1.0, share / settings.warmup, (1 - share) / (1 - settings.warmup))
            for group in self.optimizer.param_groups:
                group["lr"] = max(rate, settings.lr * 1e-3)
            generator = torch.Generator().manual_seed(self.progress["steps"])
            starts = torch.randint(0, len(tokens) - settings.context, (settings.batch,), generator=generator)
            batch = torch.stack([tokens[start : start + settings.context] for start in starts.tolist()]).long()
            with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                loss = self.model(input_ids=batch, labels=batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.progress["steps"] += 1
            self.progress["loss"] = 0.99 * self.progress["loss"] + 0.01 * loss.item()
            self.progress["seconds"] += time.process_time() - began
            if time.perf_counter() - saved > SAVE_EVERY:
                self.save()
                saved = time.perf_counter()
                print(f"{self.progress['seconds'] / 60:.1f} min, loss {self.progress['loss']:.3f}", flush=True)
        self.save()
        self.model.eval()


def sequences(tokens: Tensor, context: int, samples: int) -> list[Tensor]:
    """Evenly spaced sequences of a split, in batches."""
    rows = tokens[: len(tokens) // context * context].view(-1, context).long()
    rows = rows[torch.linspace(0, len(rows) - 1, min(samples, len(rows))).long()]
    return list(rows.split(MEASURED))


def similarities(model: GPT2LMHeadModel, batches: list[Tensor]) -> list[float]:
    """The mean cosine of each layer's input and output."""
    sums, count = [0.0] * len(model.transformer.h), 0

    def note(number: int, _: object, args: tuple[Tensor, ...], output: Tensor) -> None:
        sums[number] += float(torch.cosine_similarity(args[0], output, dim=-1).sum())

    handles = [layer.register_forward_hook(partial(note, n)) for n, layer in enumerate(model.transformer.h)]
    with torch.no_grad():
        for batch in batches:
            model(input_ids=batch, use_cache=False)
            count += batch.numel()
    for handle in handles:
        handle.remove()
    return [total / count for total in sums]


def described(score: Score) -> dict[str, float | None]:
    return {"loss": score.loss, "perplexity": score.perplexity, "token_accuracy": score.accuracy}


class Parts:
    """Results that are kept on disk as soon as they are complete, so that a killed measurement continues."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.done: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}

    def get(self, name: str, compute: Callable[[Progress | None], Any]) -> Any:  # noqa: ANN401
        """The result of that name; it is computed if it is not there yet."""
        if name not in self.done:
            with progress_bar(name) as progress:
                self.done[name] = compute(progress)
            write_atomic(self.file, json.dumps(self.done) + "\n")
            print(f"measured: {name}", flush=True)
        return self.done[name]


def measure(model: GPT2LMHeadModel, valid: list[Tensor], test: list[Tensor], parts: Parts) -> dict[str, Any]:
    """Perplexity with layers and parts of layers closed, and with half of the layers removed."""
    layers = find_blocks(model, test[0][:2])
    blocks = {"layers": layers, "parts": find_blocks(model, test[0][:2], level="sublayer")}

    def lesions(name: str, progress: Progress | None) -> list[dict[str, Any]]:
        study = lesion_study(model, test, "test", progress, objective=OBJECTIVE, blocks=blocks[name])
        assert study.perplexity is not None
        assert study.loss_standard_error is not None
        rows = zip(study.layers, study.loss, study.perplexity, study.loss_standard_error, strict=True)
        names = ("name", "loss", "perplexity", "loss_rise_standard_error")
        return [dict(zip(names, (row[0], *map(float, row[1:])), strict=True)) for row in rows]

    def greedy(progress: Progress | None) -> dict[str, Any]:
        found = greedy_lesions(
            model, test, "test", train=valid, progress=progress, objective=OBJECTIVE, blocks=layers, choosing=None
        )
        return {"order": list(found.order), "perplexity": [math.exp(loss) for loss in found.loss]}

    def without(removed: list[int], _: Progress | None) -> dict[str, Any]:
        smaller = prune(model, [layers[number] for number in removed])
        return {"removed": removed, **described(evaluate_model(smaller, test, objective=OBJECTIVE))}

    result = {
        "whole": parts.get("whole", lambda _: described(evaluate_model(model, test, objective=OBJECTIVE))),
        "layers": parts.get("layers closed one by one", partial(lesions, "layers")),
        "parts": parts.get("parts of layers closed one by one", partial(lesions, "parts")),
        "greedy": parts.get("layers closed greedily", greedy),
        "similarity": parts.get("similarity", lambda _: similarities(model, valid)),
    }
    half, total = len(layers) // 2, len(layers)
    first = (total - half) // 2
    choices = {
        "ours": sorted(result["greedy"]["order"][:half]),
        "middle": list(range(first, first + half)),
        "most similar": sorted(int(n) for n in np.argsort(result["similarity"])[::-1][:half]),
    }
    halves = {name: parts.get(f"without {each}", partial(without, each)) for name, each in choices.items()}
    generator = random.Random(0)
    drawn = [sorted(generator.sample(range(total), half)) for _ in range(RANDOM_HALVES)]
    others = [parts.get(f"without {each}", partial(without, each)) for each in drawn]
    return {**result, "halves": halves, "random_halves": others}


def draw(result: dict[str, Any], path: Path) -> None:
    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    numbers = np.arange(1, len(result["layers"]) + 1)
    kinds = {"attention": result["parts"][::2], "feed-forward": result["parts"][1::2], "whole layer": result["layers"]}
    for place, (name, rows) in enumerate(kinds.items()):
        left.bar(
            numbers + 0.27 * (place - 1), [row["perplexity"] for row in rows], 0.25, label=name, color=COLOURS[place]
        )
    left.axhline(result["whole"]["perplexity"], color="gray", linewidth=1, label="nothing closed")
    left.set(xlabel="layer closed (from 1)", ylabel="perplexity on held-out files", xticks=numbers, yscale="log")
    left.legend(fontsize=8)
    names = list(result["halves"])
    kept = [result["halves"][name]["perplexity"] for name in names[::-1]]
    right.plot(kept, range(len(names)), "o", color=COLOURS[0])
    for place, value in enumerate(kept):
        right.annotate(f"{value:.0f}", (value, place), (8, 0), textcoords="offset points", va="center", fontsize=9)
    drawn = [row["perplexity"] for row in result["random_halves"]]
    right.plot(drawn, np.full(len(drawn), len(names)), "|", color="gray")
    right.set_yticks(range(len(names) + 1), [*names[::-1], "random"])
    right.axvline(result["whole"]["perplexity"], color="gray", linewidth=1)
    right.set(xlabel="perplexity without half of the layers", xscale="log", ylim=(-0.5, len(names) + 0.5))
    for axis in (left.yaxis, right.xaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    options, settings = read_options(), Settings()
    torch.set_num_threads(options.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if options.threads == 1 else "true"
    tokens = prepare(options.folder, settings)
    training = Training(options.folder, settings)
    training.run(tokens["train"], 60 * options.minutes, options.bfloat16)
    valid, test = (sequences(tokens[split], settings.context, options.samples) for split in ("valid", "test"))
    steps, samples = training.progress["steps"], options.samples
    parts = Parts(options.folder / f"measured-{steps}-{samples}.json")
    result = {
        "what": "perplexity of a small GPT-2 on held-out files, with layers closed or removed",
        "settings": asdict(settings) | {"bfloat16": options.bfloat16, "threads": options.threads},
        "tokens": {split: len(values) for split, values in tokens.items()},
        "training": training.progress | {"tokens": training.progress["steps"] * settings.batch * settings.context},
        "sequences": {"valid": sum(map(len, valid)), "test": sum(map(len, test))},
        **measure(training.model, valid, test, parts),
    }
    write_result(options.out, result)
    draw(result, options.picture)
    print(json.dumps({"whole": result["whole"], "halves": result["halves"]}, indent=1))


if __name__ == "__main__":
    main()
