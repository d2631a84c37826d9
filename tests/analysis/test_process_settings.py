"""A call from Python computes with the same settings as the command, and leaves the process as it was."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from verydeep import analysis
from verydeep.cli.commands._analyze import plain_beside
from verydeep.cpu import cpu_settings
from verydeep.data import Split

from ._models import Own, mlp, split


def flushes_denormals() -> bool:
    return bool(torch.full((), 1e-38) * 0.01 == 0)


def pruned(model: nn.Module, data: Split) -> None:
    usage = analysis.depth_usage(analysis.greedy_lesions(model, data), 0.5)
    analysis.prune_report(model, analysis.prune(model, usage), usage, data)


@pytest.mark.parametrize(
    "analyse",
    [
        analysis.gate_statistics,
        analysis.class_routing,
        analysis.lesion_study,
        analysis.pair_lesions,
        analysis.greedy_lesions,
        analysis.signal_flow,
        analysis.evaluate_model,
        pruned,
    ],
)
def test_an_analysis_flushes_denormals_and_leaves_the_process_as_it_was(analyse: Callable[..., object]) -> None:
    inside: list[bool] = []

    class Watched(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inside.append(flushes_denormals())
            return super().forward(x)  # type: ignore[no-any-return, no-untyped-call]

    model, data = Watched(Own()), split()
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    analyse(model, data)
    assert inside
    assert all(inside)
    assert not flushes_denormals()
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_a_call_from_python_gives_the_bits_of_the_command() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.Linear(8, 3))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1e-20)  # products of these are denormal numbers
    data = split()
    found = analysis.signal_flow(model, data)
    with cpu_settings():
        again = analysis.signal_flow(model, data)
    assert np.array_equal(found.activation, again.activation)
    assert np.array_equal(found.gradient, again.gradient)


def test_untrained_networks_for_comparison_leave_the_random_state_as_it_was() -> None:
    model = mlp()
    state = torch.get_rng_state()
    (first,) = plain_beside(model, 7).values()
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    (again,) = plain_beside(model, 7).values()
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
