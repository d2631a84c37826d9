"""The cost of closing each block of a residual network in turn: `python benchmarks/residual_lesions.py`.

Measures the processor time of the lesions of a GPT-2 of 12 layers and of a residual network of 27 blocks against as
many full passes over the same data, and counts how often samples pass a block in both. Times are the minimum over
interleaved rounds, which other load affects least. The networks are untrained, which takes the same time.

What follows the blocks, the logits of all tokens and their cross-entropy, is computed anew for every lesion. How much
that is depends on the vocabulary, so there are two: a GPT-2 with 1,000 tokens, and GPT-2 small itself (12 layers of
width 768, 50,257 tokens), in which the logits are a third of the work.
"""

import json
import time
from pathlib import Path
from typing import Any

import torch
from _result import write_result
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

from verydeep.analysis import evaluate_model, lesion_study
from verydeep.cpu import cpu_settings
from verydeep.models import create_model
from verydeep.objectives import CausalLanguageModel, Classification, Objective

OUT = Path(__file__).parents[1] / "results" / "residual_lesions.json"
ROUNDS = 3
BATCHES = 4


def gpt2() -> tuple[nn.Module, str, list[Any], Objective]:
    config = GPT2Config(
        n_layer=12, n_embd=128, n_head=4, n_positions=128, vocab_size=1000, bos_token_id=0, eos_token_id=0
    )
    tokens = [torch.randint(0, 1000, (8, 128)) for _ in range(BATCHES)]
    return GPT2LMHeadModel(config), "mlp", tokens, CausalLanguageModel()


def gpt2_small() -> tuple[nn.Module, str, list[Any], Objective]:
    tokens = [torch.randint(0, 50257, (4, 32)) for _ in range(BATCHES)]
    return GPT2LMHeadModel(GPT2Config()), "mlp", tokens, CausalLanguageModel()


def resnet() -> tuple[nn.Module, str, list[Any], Objective]:
    model = create_model("resnet-110", blocks=9)
    images = [(torch.randn(32, 3, 32, 32), torch.arange(32) % 10) for _ in range(BATCHES)]
    return model, "block", images, Classification()


def measure(model: nn.Module, inner: str, batches: list[Any], objective: Objective) -> dict[str, Any]:
    passed: list[int] = []  # samples that pass a block; copies of the model share the list

    def count(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        passed.append(len(args[0]))

    for name, module in model.eval().named_modules():
        if name.endswith(f".{inner}"):
            module.register_forward_pre_hook(count)
    seconds = {"full passes": float("inf"), "lesions": float("inf")}
    calls, layers = {"full passes": 0, "lesions": 0}, 0
    lesion_study(model, batches[:1], objective=objective)  # warms up
    for _ in range(ROUNDS):
        for name in ("full passes", "lesions"):
            passed.clear()
            began = time.process_time()
            if name == "lesions":
                layers = len(lesion_study(model, batches, objective=objective).layers)
            else:
                evaluate_model(model, batches, objective=objective)
            seconds[name] = min(seconds[name], time.process_time() - began)
            calls[name] += sum(passed)
    return {
        "blocks": layers,
        "block_calls_ratio": round(calls["lesions"] / (layers * calls["full passes"]), 4),
        "processor_time_ratio": round(seconds["lesions"] / (layers * seconds["full passes"]), 4),
        "lesion_processor_seconds": round(seconds["lesions"], 3),
        "one_pass_processor_seconds": round(seconds["full passes"], 3),
    }


@cpu_settings(threads=1)
def main() -> None:
    torch.manual_seed(0)
    result: dict[str, Any] = {
        "what": "lesions of every block, relative to one full pass per block",
        "gpt2": measure(*gpt2()),
        "gpt2_small": measure(*gpt2_small()),
        "resnet": measure(*resnet()),
    }
    write_result(OUT, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
