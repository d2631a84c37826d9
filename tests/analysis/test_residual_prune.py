"""Removing blocks of residual networks: closed equals removed, to the bit, also after saving and loading."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.analysis._families import FAMILIES, Family, gpt2
from torch import Tensor, nn

from verydeep.analysis import Block, depth_usage, evaluate_model, find_blocks, greedy_lesions, prune, prune_report
from verydeep.analysis.blocks._blocks import ForwardMode, InstrumentedModel
from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.objectives import call_model

OURS = "resnet"  # the family that is not one of transformers


def closed_and_blocks(family: Family, model: nn.Module, numbers: set[int], level: Any) -> tuple[Tensor, list[Block]]:
    """The outputs with some blocks closed, and these blocks."""
    blocks = find_blocks(model, family.example(), family.named, level)
    instrumented = InstrumentedModel(model, family.example(), blocks, family.objective)
    with torch.no_grad():
        outputs = instrumented.run(ForwardMode(frozenset(numbers)), family.example())
    return outputs, [blocks[number] for number in numbers]


def outputs_of(family: Family, model: nn.Module) -> Tensor:
    with torch.no_grad():
        return family.objective.read_output(call_model(model.eval(), family.example()), 3)


@pytest.mark.parametrize("name", FAMILIES)
def test_closed_equals_removed_to_the_bit_also_after_loading(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    model = family.model()
    before = outputs_of(family, model)
    closed, removed = closed_and_blocks(family, model, {1, 3}, "layer")
    smaller = prune(model, removed)
    assert not torch.equal(closed, before)
    assert torch.equal(outputs_of(family, smaller), closed)
    assert torch.equal(outputs_of(family, model), before)
    assert type(smaller) is type(model)
    sizes = [sum(p.numel() for p in each.parameters()) for each in (model, smaller)]
    assert sizes[1] < sizes[0]
    if name == OURS:
        again = prune(family.model(), removed)
        again.load_state_dict(smaller.state_dict())
    else:
        smaller.save_pretrained(tmp_path)  # type: ignore[operator]
        again = type(smaller).from_pretrained(tmp_path, local_files_only=True)  # type: ignore[attr-defined]
    assert torch.equal(outputs_of(family, again), closed)


@pytest.mark.parametrize("name", ["gpt2", "llama", "qwen"])
def test_a_language_model_generates_the_same_with_and_without_a_cache_after_removal(name: str) -> None:
    family = FAMILIES[name]
    smaller: Any = prune(family.model(), [family.layers[0], family.layers[2]])
    assert smaller.config.num_hidden_layers == 2
    prompt = family.batches()[0][:1]
    options: dict[str, Any] = {
        "min_new_tokens": 8,
        "max_new_tokens": 8,
        "do_sample": False,
        "attention_mask": torch.ones_like(prompt),
    }
    with_cache, without = (smaller.generate(prompt, use_cache=use, **options) for use in (True, False))
    assert with_cache.shape == (1, 18)
    assert torch.equal(with_cache, without)


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.sublayers])
def test_parts_of_layers_are_removed_exactly_too(name: str) -> None:
    family = FAMILIES[name]
    model = family.model()
    closed, removed = closed_and_blocks(family, model, {0, 3}, "sublayer")
    smaller = prune(model, removed)
    assert torch.equal(outputs_of(family, smaller), closed)
    assert not torch.equal(outputs_of(family, model), closed)
    with pytest.raises(UserError, match=r"give the blocks, prune\(model"):
        prune(model, [removed[0].name])


def test_a_model_without_parts_of_layers_does_not_save_what_would_load_with_random_weights(tmp_path: Path) -> None:
    model: Any = gpt2()
    _, removed = closed_and_blocks(FAMILIES["gpt2"], model, {1}, "sublayer")
    smaller: Any = prune(model, removed)
    with pytest.raises(UserError, match=r"Save its state_dict\(\) instead"):
        smaller.save_pretrained(tmp_path / "smaller")
    prune(gpt2(), removed).load_state_dict(smaller.state_dict())
    model.save_pretrained(tmp_path / "whole")


def test_a_layer_that_depends_on_its_number_becomes_a_stub() -> None:
    family = FAMILIES["gpt2"]
    model: Any = gpt2()
    model.config.scale_attn_by_inverse_layer_idx = True
    model = type(model)(model.config).eval()
    closed, removed = closed_and_blocks(family, model, {1}, "layer")
    smaller: Any = prune(model, removed)
    assert torch.equal(outputs_of(family, smaller), closed)
    assert smaller.config.num_hidden_layers == 4


def test_our_residual_network_is_pruned_by_its_description() -> None:
    model = create_model("resnet-110", blocks=3, widths=[4, 8, 8], stem=4, input_shape=(1, 8, 8)).eval()
    x = torch.randn(4, 1, 8, 8)
    blocks = find_blocks(model, x)
    smaller = prune(model, [blocks[0], "blocks.4"])
    assert smaller.config.stages == (2, 2, 3)
    instrumented = InstrumentedModel(model, x, blocks)
    numbers = frozenset({0, [block.name for block in blocks].index("blocks.4")})
    with torch.no_grad():
        assert torch.equal(smaller(x), instrumented.run(ForwardMode(numbers), x))
    with pytest.raises(UserError, match=r"blocks.3 changes the shape"):
        prune(model, [3])


def test_depth_usage_prunes_a_language_model_and_reports_what_it_costs() -> None:
    family = FAMILIES["gpt2"]
    model, batches = family.model(), family.batches(batches=3)
    usage = depth_usage(greedy_lesions(model, batches, objective=family.objective), tolerance=0.9)
    smaller = prune(model, usage)
    report = prune_report(model, smaller, usage, batches, objective=family.objective)
    assert report.chosen[1] == evaluate_model(smaller, batches, objective=family.objective)
    assert report.chosen[1].loss == pytest.approx(usage.greedy.loss[len(usage.idle)])
    assert report.multiply_adds[1] < report.multiply_adds[0]


def test_names_that_do_not_exist_are_refused() -> None:
    with pytest.raises(UserError, match=r"unknown block 'transformer\.h\.9'"):
        prune(FAMILIES["gpt2"].model(), ["transformer.h.9"])
