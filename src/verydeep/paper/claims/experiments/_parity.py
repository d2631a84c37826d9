"""Section 1: a tiny recurrent network computes the parity of strings of any length."""

from collections.abc import Mapping, Sequence
from typing import Any

from verydeep.paper._verdict import Verdict, any_verdict
from verydeep.paper.claims._experiment import ClaimExperiment, Conclusion, Evidence, PaperStatement, Report

_SEEDS, _QUICK_SEEDS = (0, 1, 2, 3, 4), (0,)
_LONGEST, _STRINGS = 8, 5000  # bits of the training strings, and how many there are
_LENGTHS = (8, 16, 32, 64, 128)  # of test strings
_WIDTH, _DEPTH, _GATE_BIAS = 8, 2, -1.0
_RATE, _MOMENTUM, _CLIP, _BATCH, _EPOCHS = 0.1, 0.9, 1.0, 50, 10


def _measure(quick: bool, report: Report) -> Mapping[str, Any]:
    """The accuracy by seed and length of the strings."""
    found, seeds = {}, _QUICK_SEEDS if quick else _SEEDS
    for number, seed in enumerate(seeds, 1):
        found[seed] = _accuracies(seed)
        report(number / len(seeds))
    return {"accuracy": found}


def _accuracies(seed: int) -> dict[int, float]:
    """Train on strings of up to 8 bits and test on longer ones; shorter strings begin with zeros."""
    import torch
    from torch.nn.functional import cross_entropy
    from torch.nn.utils import clip_grad_norm_

    from verydeep.models import create_model

    generator = torch.Generator().manual_seed(seed)

    def strings(count: int, bits: int, shortest: int) -> tuple[torch.Tensor, torch.Tensor]:
        lengths = torch.randint(shortest, bits + 1, (count, 1), generator=generator)
        x = torch.randint(2, (count, bits), generator=generator) * (torch.arange(bits) >= bits - lengths)
        return x.float(), x.sum(1) % 2

    def network(bits: int) -> torch.nn.Module:
        return create_model(
            "recurrent-highway", width=_WIDTH, depth=_DEPTH, gate_bias=_GATE_BIAS, input_shape=(bits,), classes=2
        )

    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        model = network(_LONGEST)
    optimiser = torch.optim.SGD(model.parameters(), _RATE, _MOMENTUM)
    x, y = strings(_STRINGS, _LONGEST, 1)
    for _ in range(_EPOCHS):
        for batch in torch.randperm(_STRINGS, generator=generator).split(_BATCH):
            optimiser.zero_grad()
            cross_entropy(model(x[batch]), y[batch]).backward()
            clip_grad_norm_(model.parameters(), _CLIP)
            optimiser.step()
    found = {}
    for bits in _LENGTHS:
        longer = network(bits)
        longer.load_state_dict(model.state_dict())
        x, y = strings(1000, bits, bits)
        with torch.no_grad():
            found[bits] = (longer(x).argmax(1) == y).double().mean().item()
    return found


def parity_verdict(longest: Sequence[float]) -> Verdict:
    """The verdict on the accuracies for the longest strings, one per seed."""
    return any_verdict(sum(each > 0.99 for each in longest), len(longest))


def _conclude(evidence: Evidence) -> Sequence[Conclusion]:
    accuracy: Mapping[str, Mapping[str, float]] = evidence.measured["accuracy"]
    longest = [each[str(_LENGTHS[-1])] for each in accuracy.values()]
    text = f"trained on up to {_LONGEST} bits; accuracy on strings of {_LENGTHS[-1]}: "
    return [
        Conclusion(
            text + ", ".join(f"{each:.1%}" for each in longest), parity_verdict(longest), {"accuracy": dict(accuracy)}
        )
    ]


PARITY = ClaimExperiment(
    "parity",
    "parity by a recurrent highway network",
    (
        PaperStatement(
            "1",
            "A tiny recurrent network learns the parity of strings of any length.",
            f"Agrees if every seed is right for more than 99 % of the strings of {_LENGTHS[-1]} bits, differs in part "
            "if some are.",
        ),
    ),
    _conclude,
    measure=_measure,
    protocol=f"recurrent highway networks of width {_WIDTH} with {_DEPTH} layers per step, {_EPOCHS} epochs of "
    f"{_STRINGS:,} strings of up to {_LONGEST} bits, five seeds, tested on strings of {_LENGTHS[0]} to {_LENGTHS[-1]} "
    "bits",
)
