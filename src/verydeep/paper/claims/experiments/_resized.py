"""Section 2.1: layers that change the size of their input by sub-sampling and zero-padding what they carry."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import TRAINS, ClaimExperiment, Conclusion, Evidence, PaperStatement, Report

_SEEDS, _QUICK_SEEDS = (0, 1, 2), (0,)
_IMAGES, _QUICK_IMAGES, _TESTED = 10_000, 500, 2000
_MAPS = (16, 32, 64)  # of three stages, each of half the size of the one before
_LAYERS = 3  # highway layers per stage
_RATE, _MOMENTUM, _BATCH, _EPOCHS, _QUICK_EPOCHS = 0.02, 0.9, 100, 3, 6
_WAYS = {"resized": "highway layers with x-hat", "plain": "plain layers"}


def _measure(quick: bool, report: Report) -> Mapping[str, Any]:
    """Training loss and test accuracy by the layers that change the size, and by seed."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in _WAYS}
    seeds = _QUICK_SEEDS if quick else _SEEDS
    for number, (seed, way) in enumerate(((seed, way) for seed in seeds for way in _WAYS), 1):
        found[way].append(_train(way, seed, quick))
        report(number / len(seeds) / len(_WAYS))
    return found


def _train(way: str, seed: int, quick: bool) -> dict[str, float]:
    import torch
    from torch.nn.functional import cross_entropy

    from verydeep.data import load_dataset

    data = load_dataset("digits" if quick else "mnist")
    count = _QUICK_IMAGES if quick else _IMAGES
    x, y = data.train.x[:count], data.train.y[:count]
    mean_value, deviation = x.mean(), x.std()
    x, tested = (x - mean_value) / deviation, (data.test.x[:_TESTED] - mean_value) / deviation
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        model = _network(way, x.shape[1:])
        optimiser = torch.optim.SGD(model.parameters(), _RATE, _MOMENTUM, nesterov=True)
        for _ in range(_QUICK_EPOCHS if quick else _EPOCHS):
            for batch in torch.randperm(count).split(_BATCH):
                optimiser.zero_grad()
                cross_entropy(model(x[batch]), y[batch]).backward()
                optimiser.step()
    with torch.no_grad():
        logits = torch.cat([model(part) for part in x.split(500)])
        answers = torch.cat([model(part).argmax(1) for part in tested.split(500)])
    right = (answers == data.test.y[:_TESTED]).double().mean()
    return {"loss": cross_entropy(logits, y).item(), "accuracy": right.item()}


def _network(way: str, shape: Sequence[int]) -> Any:  # noqa: ANN401 - a module; torch is not imported yet
    """Three stages of highway layers; the first layer of each halves the maps and changes their number."""
    from torch import nn

    from verydeep.nn import HighwayConv2d

    def plain(before: int, maps: int, stride: int) -> list[nn.Module]:
        layer = nn.Conv2d(before, maps, 3, stride, 1)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        return [layer, nn.ReLU()]

    channels, height, width = shape
    layers, before = plain(channels, _MAPS[0], 1), _MAPS[0]
    for maps in _MAPS:
        resized = [HighwayConv2d(before, out_channels=maps, stride=2)]
        layers += resized if way == "resized" else plain(before, maps, 2)
        layers += [HighwayConv2d(maps) for _ in range(_LAYERS)]
        before, height, width = maps, -(-height // 2), -(-width // 2)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * height * width, 10))


def resized_verdict(resized: Sequence[float], plain: Sequence[float]) -> Verdict:
    """Whether x-hat trains with every seed, and to a mean loss that is at most twice that of plain layers."""
    return any_verdict((max(resized) < TRAINS) + (mean(resized) <= 2 * mean(plain)), 2)


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    found: Mapping[str, Sequence[Mapping[str, float]]] = {way: evidence.measured[way] for way in _WAYS}
    texts = [
        f"{words}: loss {mean(each['loss'] for each in found[way]):.2g}, test accuracy "
        f"{mean(each['accuracy'] for each in found[way]):.2%}"
        for way, words in _WAYS.items()
    ]
    losses = [[each["loss"] for each in found[way]] for way in _WAYS]
    return [Conclusion("; ".join(texts), resized_verdict(*losses), dict(found))]


RESIZED = ClaimExperiment(
    "resized",
    "layers that change the size",
    (
        PaperStatement(
            "2.1",
            "A layer may change its size with sub-sampled or zero-padded inputs on the carry path.",
            "Agrees if every seed reaches a training loss below half of a blind guess's, and their mean is at most "
            "twice that of networks in which plain layers change the size, as in the paper; differs in part if one of "
            "both holds.",
        ),
    ),
    _conclude,
    measure=_measure,
    protocol=f"convolutional networks of three stages with {_LAYERS} highway layers each, {_EPOCHS} epochs of "
    f"{_IMAGES:,} images of MNIST, three seeds, tested on {_TESTED:,} images",
)
