"""Lesions, pairs, greedy curves and signal flow of residual networks: right numbers, at half the passes."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.analysis._families import FAMILIES, VOCABULARY, BasicBlock, Family, gpt2
from torch import Tensor, nn
from torch.utils.data import DataLoader

from verydeep.analysis import (
    Findings,
    evaluate_model,
    find_blocks,
    greedy_lesions,
    lesion_study,
    load_findings,
    pair_lesions,
    prune,
    save_findings,
    signal_flow,
)
from verydeep.data import Split
from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.objectives import CausalLanguageModel, MaskedLanguageModel, Objective

LANGUAGE = CausalLanguageModel()


def options(family: Family) -> dict[str, Any]:
    return {"objective": family.objective, "blocks": family.named}


@pytest.mark.parametrize("name", FAMILIES)
def test_each_lesion_is_the_network_without_the_block(name: str) -> None:
    family = FAMILIES[name]
    model, batches = family.model(), family.batches()
    study = lesion_study(model, batches, "some", **options(family))
    assert study.layers == family.layers
    blocks = find_blocks(model, family.example(), family.named)
    for number in (0, len(blocks) - 1):
        score = evaluate_model(prune(model, [blocks[number]]), batches, objective=family.objective)
        assert score.loss == pytest.approx(study.loss[number], abs=1e-6)
        assert score.error == pytest.approx(study.error[number])
    whole = evaluate_model(model, batches, objective=family.objective)
    assert study.baseline.loss == pytest.approx(whole.loss, abs=1e-6)
    assert (study.loss != study.baseline.loss).all()
    assert study.loss_standard_error is not None
    assert (study.loss_standard_error > 0).all()


def test_greedy_and_pairs_agree_with_single_lesions() -> None:
    family = FAMILIES["llama"]
    model, batches = family.model(), family.batches()
    study = lesion_study(model, batches, objective=LANGUAGE)
    pairs = pair_lesions(model, batches, objective=LANGUAGE)
    greedy = greedy_lesions(model, batches, objective=LANGUAGE)
    assert np.array_equal(np.diag(pairs.loss), study.loss)
    assert greedy.order[0] == study.loss.argmin()
    assert greedy.loss[1] == pytest.approx(study.loss.min(), abs=1e-9)
    first, second = greedy.order[:2]
    assert greedy.loss[2] == pytest.approx(pairs.loss[first, second], abs=1e-9)


@pytest.mark.parametrize(("name", "inner"), [("gpt2", "mlp"), ("resnet", "conv1")])
def test_lesions_cost_less_than_six_tenths_of_full_passes(name: str, inner: str) -> None:
    family = FAMILIES[name]
    model: Any = gpt2_of(12) if name == "gpt2" else family.model()
    if name == "resnet":
        model.layer1 = nn.Sequential(*(BasicBlock(6, 6) for _ in range(12)))
    seen: list[int] = []  # samples that pass a block; copies of the model share the list

    def count(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen.append(len(args[0]))

    for path, module in model.named_modules():
        if path.endswith(f".{inner}"):
            module.register_forward_pre_hook(count)
    batches = family.batches(samples=16, batches=8)
    evaluate_model(model, batches, objective=family.objective)
    one_pass = sum(seen)
    seen.clear()
    layers = len(lesion_study(model, batches, objective=family.objective).layers)
    assert layers >= 12
    assert sum(seen) < 0.6 * layers * one_pass


def gpt2_of(layers: int) -> nn.Module:
    small: Any = gpt2()
    small.config.num_hidden_layers = layers
    return type(small)(small.config)  # type: ignore[no-any-return]


def test_reuse_gives_the_same_bits_as_full_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    family = FAMILIES["qwen"]
    model, batches = family.model(), family.batches()
    blocks = find_blocks(model, family.example(), level="sublayer")
    reused = lesion_study(model, batches, objective=LANGUAGE, blocks=blocks)
    monkeypatch.setattr("verydeep.analysis.lesions._lesions.can_replay", lambda *_: False)
    full = lesion_study(model, batches, objective=LANGUAGE, blocks=blocks)
    assert np.array_equal(reused.loss, full.loss)
    assert len(reused.layers) == 8


@pytest.mark.parametrize("name", ["gpt2", "vit", "resnet"])
def test_bfloat16_models_work(name: str) -> None:
    family = FAMILIES[name]
    model = family.model().bfloat16()
    study = lesion_study(model, family.batches(), objective=family.objective)
    assert np.isfinite(study.loss).all()
    assert np.isfinite(signal_flow(model, family.batches(), objective=family.objective).gradient).all()


def test_batches_of_a_tokeniser_are_dictionaries_and_padding_is_not_predicted() -> None:
    model, (tokens, _) = FAMILIES["gpt2"].model(), FAMILIES["gpt2"].batches()
    mask = torch.ones_like(tokens)
    mask[:, 7:] = 0
    padded = tokens.masked_fill(mask == 0, 0)
    rows: Any = [{"input_ids": t, "attention_mask": m} for t, m in zip(padded, mask, strict=True)]
    loader: DataLoader[Any] = DataLoader(rows, 2)
    short = lesion_study(model, [tokens[:, :7]], objective=LANGUAGE)
    assert lesion_study(model, loader, objective=LANGUAGE).loss == pytest.approx(short.loss, rel=1e-5)
    perplexity = math.exp(short.baseline.loss)
    assert 1 < perplexity < 100 * VOCABULARY


def test_masked_tokens_are_the_same_in_every_pass() -> None:
    objective, tokens = MaskedLanguageModel(3, 0.3), FAMILIES["bert"].batches()[0]
    (first, y), (again, same) = (objective.read_batch(tokens) for _ in range(2))
    assert isinstance(first, dict)
    assert isinstance(again, dict)
    assert torch.equal(first["input_ids"], again["input_ids"])
    assert torch.equal(y, same)
    assert 0 < (y != -100).float().mean() < 0.6
    with pytest.raises(UserError, match="no 'labels'"):
        MaskedLanguageModel().read_batch(tokens)


class Halves(Objective):
    """A user's: are the outputs of the first half larger than those of the second?"""

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return torch.nn.functional.softplus(-y * self.margin(outputs)).sum()

    def answer(self, outputs: Tensor) -> Tensor:
        return self.margin(outputs).sign()

    def check(self, outputs: Tensor, y: Tensor) -> None:
        assert len(outputs) == len(y)

    def margin(self, outputs: Tensor) -> Tensor:
        return outputs[:, 0].float() - outputs[:, 1].float()


def test_an_objective_of_ones_own_measures_a_model_of_transformers() -> None:
    family = FAMILIES["vit"]
    batches = [{"pixel_values": x, "labels": 2 * (y % 2) - 1} for x, y in family.batches()]
    study = lesion_study(family.model(), batches, objective=Halves())
    assert study.measure == "accuracy"
    assert 0 <= study.baseline.error <= 1


@pytest.mark.parametrize("form", ["batches", "pair", "split", "dictionary"])
def test_an_objective_of_ones_own_gets_its_targets_as_they_are(form: str) -> None:
    torch.manual_seed(0)
    model = create_model("residual-mlp", depth=4, width=8, input_shape=(8,), classes=2)
    x = torch.randn(40, 8)
    with torch.no_grad():
        margins = Halves().margin(model(x))
    y = margins.sign()
    y[:10] *= -1  # a quarter of the answers are wrong
    forms = {"batches": [(x, y)], "pair": (x, y), "split": Split(x, y), "dictionary": [{"x": x, "labels": y}]}
    data: Any = forms[form]
    study = lesion_study(model, data, objective=Halves())
    for score in (study.baseline, evaluate_model(model, data, objective=Halves())):
        assert score.error == 0.25
        assert score.loss == pytest.approx(float(torch.nn.functional.softplus(-y * margins).mean()))


def test_an_objective_of_ones_own_that_cannot_be_used_gets_one_line() -> None:
    class WithoutAnswer(Objective):
        def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
            return (outputs[:, 0] - y).square().sum()

        def check(self, outputs: Tensor, y: Tensor) -> None:
            pass

    model, x = create_model("residual-mlp", depth=3, width=8, input_shape=(8,), classes=2), torch.randn(6, 8)
    with pytest.raises(UserError, match="the objective WithoutAnswer must define the method answer"):
        lesion_study(model, [(x, torch.ones(6))], objective=WithoutAnswer())
    with pytest.raises(UserError, match=r"Halves.answer returns shape \(6,\), but the targets have shape \(6, 1\)"):
        lesion_study(model, [(x, torch.ones(6, 1))], objective=Halves())


def test_signal_flow_follows_the_blocks_of_a_language_model() -> None:
    family = FAMILIES["gpt2"]
    flow = signal_flow(family.model(), family.batches(), "untrained", objective=LANGUAGE)
    assert flow.layers == family.layers
    assert (flow.gradient > 0).all()
    bert = FAMILIES["bert"]
    named = signal_flow(bert.model(), bert.batches(), objective=bert.objective, blocks=bert.named)
    assert named.layers == bert.layers


def test_findings_of_a_language_model_are_saved_and_drawn(tmp_path: Path) -> None:
    family = FAMILIES["gpt2"]
    model, batches = family.model(), family.batches()
    found = Findings(
        lesions=lesion_study(model, batches, "some", objective=LANGUAGE),
        pairs=pair_lesions(model, batches, "some", objective=LANGUAGE),
        flow=(signal_flow(model, batches, objective=LANGUAGE),),
    )
    save_findings(found, tmp_path)
    assert load_findings(tmp_path).lesions is not None
    assert set(found.plot(tmp_path)) >= {"lesions", "pairs"}
    assert found.lesions is not None
    assert found.lesions.perplexity is not None
    assert found.lesions.perplexity == pytest.approx(np.exp(found.lesions.loss))


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([torch.zeros(2, 4)], "expected token numbers"),
        ([{"ids": torch.zeros(2, 4).long()}], "dictionary with input_ids; got ids"),
        ([torch.full((2, 4), VOCABULARY)], "the model fails on samples|token numbers"),
        ([torch.zeros(2, 1).long()], "no token to predict"),
    ],
)
def test_unsuitable_text_gets_one_line(batches: list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        lesion_study(FAMILIES["gpt2"].model(), batches, objective=LANGUAGE)
    assert "\n" not in str(error.value)
