"""dasNet: a policy that weights feature maps over several passes, learnt by SNES on validation images."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from verydeep.cli import main
from verydeep.data import Split
from verydeep.errors import UserError
from verydeep.models import (
    Conv,
    ConvConfig,
    ConvNet,
    DasNetConfig,
    Highways,
    Pool,
    build,
    from_pretrained,
    save_pretrained,
)
from verydeep.optim import SNES
from verydeep.training import Attention, Run, learn_attention

LAYERS = (Conv(6, pieces=2), Pool(2, 2), Conv(8), Pool())


def dasnet(passes: int = 2) -> nn.Module:
    return build(DasNetConfig(LAYERS, (1, 8, 8), 3, passes=passes)).eval()


def test_a_policy_of_zeros_changes_nothing_and_another_one_does(tmp_path: Path) -> None:
    model, x = dasnet(), torch.randn(4, 1, 8, 8)
    assert model.policy.shape == (14, 17)
    torch.testing.assert_close(model(x), model.network(x))  # type: ignore[operator]
    nn.init.normal_(model.policy)  # type: ignore[arg-type]
    assert (model(x) - model.network(x)).abs().max() > 1e-3  # type: ignore[operator]
    assert torch.equal(model.train()(x), model.network(x))  # type: ignore[operator]
    save_pretrained(model.eval(), tmp_path)  # type: ignore[arg-type]
    torch.testing.assert_close(from_pretrained(tmp_path)(x), model(x))


def test_gains_are_those_of_the_formula() -> None:
    """Gains are sigmoids that are scaled to a mean of 1; a pass multiplies each map by its gain."""
    model, x = dasnet(passes=1), torch.randn(4, 1, 8, 8)
    nn.init.normal_(model.policy)  # type: ignore[arg-type]
    conv1, max1, pool1, conv2, relu2, pool2 = model.network.layers  # type: ignore[union-attr, misc]
    a = max1(conv1(x))
    b = relu2(conv2(pool1(a)))
    logits = model.network.classifier(pool2(b).flatten(1))  # type: ignore[union-attr, operator]
    observed = torch.cat([a.mean((2, 3)), b.mean((2, 3)), logits.softmax(1)], 1)
    gains = torch.sigmoid(observed @ model.policy.T)  # type: ignore[operator]
    gains = gains / gains.mean(1, keepdim=True)
    b = relu2(conv2(pool1(a * gains[:, :6, None, None]))) * gains[:, 6:, None, None]
    expected = model.network.classifier(pool2(b).flatten(1))  # type: ignore[union-attr, operator]
    torch.testing.assert_close(model(x), expected)


def test_snes_finds_the_minimum_of_a_badly_scaled_function_and_repeats_itself() -> None:
    target, scales = torch.linspace(-1, 1, 8), torch.logspace(0, 2, 8)
    found = []
    for _ in range(2):
        search = SNES(torch.zeros(8), 0.5, seed=1)
        for _ in range(300):
            search.tell((scales * (search.ask() - target).square()).sum(1))
        found.append(search.mean)
    torch.testing.assert_close(found[0], target, rtol=0, atol=0.01)
    assert torch.equal(*found)


def test_losses_that_do_not_belong_to_the_candidates_are_refused() -> None:
    search = SNES(torch.zeros(3), 1.0, population=5)
    with pytest.raises(UserError, match="one loss for each of the 5 candidates that ask gave"):
        search.tell(torch.zeros(5))
    with pytest.raises(UserError, match="at least 2 and a positive deviation"):
        SNES(torch.zeros(3), 1.0, population=1)


def test_a_policy_is_learnt_for_fixed_weights() -> None:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(60, 1, 8, 8, generator=random)
    y = (x.mean((1, 2, 3)) > 0).long()
    network = ConvNet(ConvConfig(LAYERS, (1, 8, 8), 3))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    losses: list[float] = []
    settings = Attention(passes=1, generations=20, population=12, images=60, deviation=0.5)
    model = learn_attention(network, Split(x, y), settings, lambda _, loss: losses.append(loss))
    assert all(torch.equal(value, before[name]) for name, value in model.network.state_dict().items())
    assert losses[-1] < losses[0]
    again = learn_attention(network, Split(x, y), settings)
    assert torch.equal(again.policy, model.policy)


def test_networks_with_highways_and_impossible_settings_are_refused() -> None:
    network = ConvNet(ConvConfig((Conv(4), Highways((3,)), Pool()), (1, 8, 8), 3))
    split = Split(torch.zeros(4, 1, 8, 8), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(UserError, match="this network has highway layers"):
        learn_attention(network, split)
    with pytest.raises(UserError, match="generations must be at least 1, got 0"):
        Attention(generations=0)
    with pytest.raises(UserError, match="passes must be at least 1, got 0"):
        DasNetConfig(LAYERS, passes=0)


def test_the_command_learns_a_policy_and_its_run_can_be_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, options = str(tmp_path / "run"), ["--data.validation", "0.2", "--epochs", "1", "--threads", "1"]
    assert main(["train", "digits", "--model.name", "plain-conv", "--depth", "3", *options, "--folder", run]) == 0
    few = ["--passes", "1", "--generations", "2", "--population", "3", "--images", "20"]
    capsys.readouterr()
    assert main(["attend", run, *few, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"valid", "test", "folder"}
    assert main(["eval", found["folder"]]) == 0
    derived = Run.load(found["folder"])
    assert derived.model.config.passes == 1
    assert "attended, test accuracy" in repr(derived)
    assert main(["report", found["folder"]]) == 0
    assert main(["train", "--resume", found["folder"], "--epochs", "9"]) == 2
    assert "was made from another run, not trained" in capsys.readouterr().err
    assert derived.metrics[0].test_accuracy == found["test"]["after"]
    for wrong, words in (
        ([], "already exists"),
        (["--passes", "0", "--folder", f"{run}-2"], "passes must be at least"),
    ):
        assert main(["attend", run, *few, *wrong]) == 2
        message = capsys.readouterr().err
        assert words in message
        assert message.count("\n") == 1
