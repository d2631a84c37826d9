"""Layers of a residual stack are closed, counted and removed one by one, like those of a highway stack."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from verydeep.analysis import (
    DepthUsage,
    Findings,
    depth_usage,
    find_blocks,
    gate_statistics,
    greedy_lesions,
    highway_layers,
    lesion_study,
    load_result,
    prune,
    random_lesions,
    reorder_study,
    signal_flow,
)
from verydeep.cli import main
from verydeep.data import Dataset, load_dataset
from verydeep.errors import UserError
from verydeep.models import MLP, create_model
from verydeep.nn import HighwayStack, ResidualStack
from verydeep.report import write_model_report
from verydeep.report.html._tables import layer_table


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_dataset("digits")


@pytest.fixture
def model() -> MLP:
    torch.manual_seed(0)
    made = create_model("residual-mlp", depth=6, width=16, input_shape=(1, 8, 8), activation="relu")
    assert isinstance(made, MLP)
    assert isinstance(made.stack, ResidualStack)
    nn.init.normal_(made.stack.weight, std=0.3)
    return made.eval()


def test_closed_layers_copy_their_input_fused_or_not(model: MLP) -> None:
    stack, x = model.stack, torch.randn(7, 16)
    assert isinstance(stack, ResidualStack)
    expected = x
    for layer in (0, 2, 4):
        expected = expected + (expected @ stack.weight[layer].T + stack.bias[layer]).relu()
    for backend in ("auto", "reference"):
        stack.backend = backend
        torch.testing.assert_close(stack(x, closed={1, 3}), expected)
    with pytest.raises(UserError, match="the residual layers are numbered 0 to 4"):
        stack(x, closed={5})


def test_every_layer_is_a_block(model: MLP, data: Dataset) -> None:
    blocks = find_blocks(model, data.test.x[:2])
    assert [(block.name, block.kind) for block in blocks] == [(f"stack.{n}", "residual") for n in range(5)]
    assert highway_layers(model) == ()
    with pytest.raises(UserError, match="highway"):
        gate_statistics(model, data.test)


def test_lesions_agree_with_closing(model: MLP, data: Dataset) -> None:
    study = lesion_study(model, data.test)
    assert study.layers == tuple(f"stack.{n}" for n in range(5))
    x, y = data.test.x, data.test.y
    for layer in range(5):
        wrong = (model(x, closed={layer}).argmax(1) != y).float().mean()
        assert study.error[layer] == pytest.approx(float(wrong), abs=1e-6)
    assert random_lesions(model, data.test, [2], draws=2).error.shape == (1, 2)
    assert reorder_study(model, data.test, [0, 2], draws=2).error.shape == (2, 2)
    assert list(signal_flow(model, data.test).layers)[:5] == [f"stack.{n}" for n in range(5)]


def test_removed_equals_closed_to_the_bit(model: MLP, data: Dataset) -> None:
    usage = depth_usage(greedy_lesions(model, data.test), tolerance=0.3)
    smaller = prune(model, usage)
    assert smaller.config.depth == 6 - len(usage.idle)
    x = data.test.x
    assert torch.equal(smaller(x), model(x, closed=set(usage.idle)))
    assert torch.equal(prune(model, {1, 3})(x), model(x, closed={1, 3}))
    assert prune(model, range(5)).config.depth == 1


def test_a_module_of_your_own_with_both_kinds_of_stacks(data: Dataset, tmp_path: Path) -> None:
    net = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 8), HighwayStack(8, 2), ResidualStack(8, 3), nn.Linear(8, 10)
    ).eval()
    found = lesion_study(net, data.test)
    assert found.layers == ("2.0", "2.1", "3.0", "3.1", "3.2")
    assert gate_statistics(net, data.test).layers == ("2.0", "2.1")
    flow = signal_flow(net, data.test, blocks=find_blocks(net, data.test.x[:2]))
    assert set(found.layers) <= set(flow.layers)
    gates = gate_statistics(net, data.test)
    header, rows = layer_table(Findings(gates=gates, lesions=found)) or ([], [])
    assert [row[header.index("mean gate")] != "" for row in rows] == [True, True, False, False, False]
    assert rows[1][header.index("mean gate")] == f"{gates.mean[1].mean():.4f}"
    write_model_report(Findings(gates=gates, lesions=found), tmp_path / "both.html", model=net)
    other = replace(found, layers=found.layers[1:])  # the first gated layer is not among these
    with pytest.raises(UserError, match=r"different numbers of layers \(2 and 4\)"):
        write_model_report(Findings(gates=gates, lesions=other), tmp_path / "wrong.html")
    x = data.test.x
    expected = net[4](net[3](net[2](net[1](net[0](x)), {1}), {0, 2}))
    assert torch.equal(prune(net, {"2.1", "3.0", "3.2"})(x), expected)


def test_the_commands_look_at_single_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    options = ["--model", "residual-mlp", "--depth", "5", "--model.width", "16", "--epochs", "2", "--threads", "1"]
    assert main(["train", "digits", *options, "--folder", str(run), "--quiet"]) == 0
    assert main(["analyze", str(run)]) == 0
    printed = capsys.readouterr()
    assert "of 4 layers" in printed.out
    assert "it has no gates; left out: gates, routing of classes" in printed.err
    assert main(["report", str(run)]) == 0
    page = (run / "report.html").read_text()
    assert "of 4 residual blocks" in page
    assert "highway layer" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert main(["prune", str(run), "--tolerance", "50%"]) == 0
    assert main(["explore", str(run), "--no-open"]) == 0
    usage = load_result(run / "analysis" / "usage.npz", DepthUsage)
    assert f'"order": {json.dumps(usage.greedy.order)}' in (run / "explore.html").read_text()
