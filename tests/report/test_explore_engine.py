"""The networks in the interactive page compute what Python computes, with layers open and closed."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files

import pytest
import torch
from playwright.sync_api import Page
from torch import Tensor, nn

from verydeep.errors import UserError
from verydeep.models import (
    MLP,
    Conv,
    ConvConfig,
    Dense,
    Dropout,
    Highways,
    MLPConfig,
    Network,
    Pool,
    build,
    create_model,
)
from verydeep.nn._activations import ACTIVATIONS
from verydeep.report.explore._network import describe_network

from .test_browser import browser, needs_chromium

pytestmark = [pytest.mark.slow, needs_chromium]
__all__ = ["browser"]  # a fixture
RUN = """([steps, weights, inputs, closed]) => {
  const network = new Network(steps, Float32Array.from(weights));
  const found = inputs.map((input) => {
    const sample = Float32Array.from(input);
    const open = network.run(sample);
    const some = network.run(sample, { closed: new Set(closed), previous: open });
    const fresh = network.run(sample, { closed: new Set(closed) });
    return [open, some, fresh].map((trace) => ({
      logits: [...trace.logits],
      outputs: trace.outputs.map((values) => [...values]),
      gates: trace.gates.map((values) => (values === null ? null : [...values])),
      first: [...(network.answerAfter(trace, 0) ?? [])],
    }));
  });
  return { layers: network.layers, found };
}"""


@pytest.fixture(scope="module")
def engine(browser: object) -> Iterator[Page]:
    page: Page = browser.new_page()  # type: ignore[attr-defined]
    script = files("verydeep.report.explore").joinpath("page", "engine.js").read_text("utf-8")
    page.add_script_tag(content=script + "\nwindow.Network = Network;")
    yield page
    page.close()


def stack(kind: str = "highway", activation: str = "tanh", depth: int = 4, width: int = 6, **more: object) -> MLPConfig:
    return MLPConfig(kind, depth, width, (5,), 3, activation, **more)  # type: ignore[arg-type]


CASES: dict[str, Callable[[], Network]] = {
    **{f"highway, {name}": partial(build, stack(activation=name)) for name in sorted(ACTIVATIONS)},
    "independent carry": lambda: build(stack(carry="independent")),
    "plain": lambda: build(stack("plain", "relu")),
    "plain, maxout": lambda: build(stack("plain", "maxout")),
    "residual": lambda: build(stack("residual", "elu")),
    "linear": lambda: build(stack(depth=0)),
    "one layer": lambda: build(stack(depth=1)),
    "hundred layers": lambda: build(stack(depth=100)),
    "conv highways": lambda: build(
        ConvConfig((Conv(5, 5, padding=0), Highways((3, 1, 5)), Pool(3, 2), Dropout(0.3), Dense(7)), (2, 9, 8), 4)
    ),
    "conv maxout": lambda: build(
        ConvConfig((Conv(3, 4, padding=2, pieces=2), Pool(4, 3), Conv(4, stride=2), Dense(6, 3)), (1, 12, 11), 3)
    ),
    "conv without a classifier": lambda: build(
        ConvConfig(
            (Conv(4, 1), Pool(2, 2, "mean"), Conv(None, 1, linear=True), Pool(how="mean")), (3, 7, 7), 5, -1, None
        )
    ),
    "conv, largest": lambda: build(ConvConfig((Conv(4), Conv(6, linear=True), Pool()), (1, 5, 6), 3)),
    "highway-mnist-16": lambda: create_model("highway-mnist-16"),
    "fitnet-a": lambda: create_model("fitnet-a", input_shape=(3, 16, 16)),
    "staged": lambda: create_model("highway-conv", input_shape=(3, 12, 12), depth=7, width=4),
}


def expected(model: Network, x: Tensor, closed: set[int]) -> tuple[Tensor, list[Tensor]]:
    """Logits and transform gates as Python computes them; residual layers are closed one by one."""
    with torch.no_grad():
        stack = getattr(model, "stack", None)
        if model.highway_depth or stack is None or not closed:
            return model(x, closed=closed & set(range(model.highway_depth))), [t.t for t in model.trace(x, closed)]
        assert isinstance(model, MLP)
        assert model.input is not None
        y = stack.activation(model.input(x))
        for number, parameters in enumerate(stack.layer_parameters()):
            y = y if number in closed else stack._layer(y, *parameters)
        return model.classifier(y), []


@pytest.mark.parametrize("name", CASES)
def test_the_page_computes_what_python_computes(engine: Page, name: str) -> None:
    torch.manual_seed(1)
    model = CASES[name]().eval()
    for parameter in model.parameters():  # gates that are neither open nor closed, and biases that count
        nn.init.normal_(parameter, 0, 0.05 if "hundred" in name else 0.5 / max(1, parameter[0].numel()) ** 0.5)
    described = describe_network(model)
    x = torch.randn(2, *model.input_shape)
    layers = sum(step["layer"] is not None for step in described.steps)
    closed = {0, layers - 1} if layers else set()
    arguments = [described.steps, described.weights.tolist(), x.flatten(1).tolist(), sorted(closed)]
    result = engine.evaluate(RUN, arguments)
    assert result["layers"] == layers
    for number, traces in enumerate(result["found"]):
        for trace, shut in zip(traces, (set(), closed, closed), strict=True):
            logits, gates = expected(model, x[number : number + 1], shut)
            torch.testing.assert_close(torch.tensor(trace["logits"]), logits[0], rtol=1e-5, atol=1e-5)
            found = [gate for gate in trace["gates"] if gate is not None]
            assert len(found) == len(gates)
            for gate, wanted in zip(found, gates, strict=True):
                torch.testing.assert_close(
                    torch.tensor(gate, dtype=torch.float32), wanted.flatten(), rtol=1e-5, atol=1e-5
                )
        sizes = [torch.Size(step["out"]).numel() for step in described.steps]
        assert [len(values) for values in traces[0]["outputs"]] == sizes


def test_the_answer_of_the_first_layer_is_the_classifier_on_its_output(engine: Page) -> None:
    torch.manual_seed(1)
    model, x = build(stack()).eval(), torch.randn(1, 5)
    described = describe_network(model)
    result = engine.evaluate(RUN, [described.steps, described.weights.tolist(), x.tolist(), []])
    assert isinstance(model, MLP)
    assert model.input is not None
    with torch.no_grad():
        wanted = model.classifier(model.activation(model.input(x)))
    torch.testing.assert_close(torch.tensor(result["found"][0][0]["first"]), wanted[0])


def test_the_answer_after_a_layer_is_that_of_closing_all_later_ones(engine: Page) -> None:
    torch.manual_seed(1)
    config = ConvConfig((Conv(4), Highways((3, 3)), Pool(2, 2), Highways((1, 3)), Pool(), Dense(6)), (1, 8, 8), 3)
    model, x = build(config).eval(), torch.randn(1, 1, 8, 8)
    described = describe_network(model)
    script = """([steps, weights, input]) => {
      const network = new Network(steps, Float32Array.from(weights)), trace = network.run(Float32Array.from(input));
      return steps.map((_, number) => [...(network.answerAfter(trace, number) ?? [])]);
    }"""
    found = engine.evaluate(script, [described.steps, described.weights.tolist(), x.flatten().tolist()])
    for number, step in enumerate(described.steps):
        if step["layer"] is not None:
            with torch.no_grad():
                wanted = model(x, closed=set(range(step["layer"] + 1, 4)))
            torch.testing.assert_close(torch.tensor(found[number]), wanted[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["lstm-highway", "recurrent-highway", "resnet-110", "dasnet"])
def test_a_network_that_the_page_cannot_run_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="the page cannot show this network"):
        describe_network(create_model(name))
