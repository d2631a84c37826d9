"""Whether the interactive page computes what Python computes: `python benchmarks/explore_networks.py [--networks N]`.

Makes random networks, of every kind of layer, activation, pooling and carry, for random data with every preparation,
and writes the page of each. Headless chromium computes the logits of its samples with the code and the weights in the
page: with all layers open, and with some closed, both from the start and from the first closed layer on. Python
computes the same with torch, in double precision, with weights rounded to float16 where those of the page are. Results:
results/benchmarks/explore-networks.json.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _result import write_result
from playwright.sync_api import Page, sync_playwright
from torch import Tensor, nn

from verydeep.data import DataConfig
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
    architecture,
    build,
    create_model,
    save_weights,
)
from verydeep.nn import ResidualStack
from verydeep.nn._activations import ACTIVATIONS
from verydeep.report import write_explore
from verydeep.report.explore._network import describe_network
from verydeep.training import ModelConfig, Run, TrainConfig, train

OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "explore-networks.json"
TOLERANCE = 1e-4
SCRIPTS = ("engine.js", "prepare.js", "images.js", "worker.js")
CONVOLUTIONAL = (
    *("highway-mnist-16", "highway-mnist-32", "highway-a", "highway-b", "highway-c", "highway-19-nin", "fitnet-a"),
    *("fitnet-b", "all-cnn-c", "nin", "maxout", "dsn", "highway-conv", "plain-conv"),
)
RUN = """([store, samples, closed]) => {
  const explorer = new Explorer(store);
  const logits = (key, sample, shut) => [...explorer.run({ slot: "a", key, input: { sample }, closed: shut }).logits];
  return samples.map((sample) => {
    const open = logits(sample, sample, []), after = logits(sample, sample, closed);
    return [open, after, logits(`again ${sample}`, sample, closed)];
  });
}"""


def make_data(folder: Path, random: np.random.Generator) -> dict[str, list[Run]]:
    """Runs of linear models, whose networks are replaced later: for each shape of input, one for every preparation."""
    found: dict[str, list[Run]] = {}

    def add(shape: str, name: str, data: DataConfig) -> None:
        config = TrainConfig(data, ModelConfig("plain-mlp", depth=0), epochs=1, threads=1)
        found.setdefault(shape, []).append(train(config, folder / f"{shape}-{name}", progress=False))

    for shape, sides in (("vector", (7,)), ("grey", (1, 12, 11)), ("colour", (3, 12, 12))):
        x, y = random.integers(0, 256, (80, *sides), dtype=np.uint8), np.arange(80) % 4
        np.savez(folder / f"{shape}.npz", x=x, y=y)
        np.savez(folder / f"{shape}-none.npz", x=random.normal(size=x.shape).astype(np.float32), y=y)
        methods: list[Any] = ["scale", "contrast", "standardise", "none", "zca"]
        for method in methods + ["paper"] * (shape != "vector") + ["imagenet"] * (shape == "colour"):
            file = folder / f"{shape}{'-none' if method == 'none' else ''}.npz"
            add(shape, method, DataConfig(str(file), preprocess=method))
    lines = ["kind,price,first,second,size,colour,sold,new,share"]
    for _ in range(120):
        size, colour, new = random.uniform(0, 10), random.choice(["red", "green", "blue"]), random.random() < 0.5
        day, gap = np.datetime64("2020-01-01") + int(random.integers(0, 800)), random.random() < 0.1
        target = f"{'large' if size > 5 else 'small'},{100 * size:.1f},{int(size > 4)},{int(new)}"
        lines.append(f"{target},{'' if gap else f'{size:.2f}'},{'' if gap else colour},{day},{new},{size:.1f}%")
    (folder / "table.csv").write_text("\n".join(lines))
    targets: dict[str, dict[str, Any]] = {"kind": {}, "price": {}, "first,second": {"task": "multilabel"}}
    for target, options in targets.items():
        chosen = tuple(target.split(","))
        ignore = tuple(each for each in ("kind", "price", "first", "second") if each not in chosen)
        add("table", chosen[0], DataConfig(str(folder / "table.csv"), target=chosen, ignore=ignore, **options))
    return found


def fully_connected(shape: tuple[int, ...], classes: int, number: int, random: np.random.Generator) -> Network:
    kind = ("highway", "highway", "plain", "residual")[number % 4]
    depth = 1000 if number == 48 else int(random.choice([0, 1, 2, 3, 5, 10, 20, 50, 100]))
    activation = sorted(ACTIVATIONS)[number % len(ACTIVATIONS)]
    carry = "independent" if kind == "highway" and random.random() < 0.4 else "coupled"
    width = 2 * int(random.integers(1, 20))
    return build(MLPConfig(kind, depth, width, shape, classes, activation, carry=carry))  # type: ignore[arg-type]


def convolutional(shape: tuple[int, ...], classes: int, number: int, random: np.random.Generator) -> Network:
    if number % 2 == 0:
        name = CONVOLUTIONAL[number // 2 % len(CONVOLUTIONAL)]
        return create_model(name, input_shape=shape, classes=classes)
    channels = 2 * int(random.integers(1, 5))
    pieces = int(random.choice([1, 1, 2, 3]))
    kernels = tuple(int(kernel) for kernel in random.choice([1, 3, 5], random.integers(1, 6)))
    how = "mean" if random.random() < 0.5 else "max"
    start = Conv(channels, int(random.choice([1, 3, 5])), stride=int(random.choice([1, 2])), pieces=pieces)
    body = (Dropout(0.2), start, Highways(kernels), Pool(int(random.integers(2, 5)), int(random.integers(1, 4)), how))  # type: ignore[arg-type]
    ends = {
        "dense": (Dense(2 * int(random.integers(1, 6)), pieces),),
        "whole maps": (Conv(5, linear=True), Pool(None, 2, how)),  # type: ignore[arg-type]
        "no classifier": (Conv(None, 1, linear=True), Pool(None, 2, "mean")),
    }
    end = str(random.choice(sorted(ends)))
    layers: tuple[Any, ...] = (*body, *ends[end])
    return build(ConvConfig(layers, shape, classes, -1.0, *((None,) if end == "no classifier" else ())))  # type: ignore[arg-type]


def parts(model: Network) -> list[str]:
    """The kinds of steps that the page runs for a network."""
    found, steps = [], describe_network(model).steps
    for step in steps:
        words = [step["op"], step.get("activation") or step.get("how", ""), step.get("carry", "")]
        found.append(" ".join(filter(None, words)))
    return [*sorted({part for part in found if part != "affine identity"}), f"{len(steps)} steps"]


def give_network(run: Run, model: Network, folder: Path) -> Run:
    """A copy of a run with another network; gates are neither open nor closed, and biases count."""
    shutil.copytree(run.path, folder)
    for parameter in model.parameters():
        fan_in = parameter[0].numel() if parameter.dim() > 1 else 4
        nn.init.normal_(parameter, 0, 0.6 / fan_in**0.5)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | architecture(model)))
    save_weights(model, folder / "model.safetensors")
    return Run.load(folder)


def logits_in_python(model: Network, x: Tensor, closed: set[int]) -> Tensor:
    """What torch computes in double precision; residual layers are closed one by one."""
    with torch.inference_mode():
        stack = getattr(model, "stack", None)
        if not (closed and isinstance(stack, ResidualStack)):
            return model.double()(x.double(), closed=closed)
        assert isinstance(model, MLP)
        assert model.input is not None
        model.double()
        y = stack.activation(model.input(x.double().flatten(1)))
        for number, parameters in enumerate(stack.layer_parameters()):
            y = y if number in closed else stack._layer(y, *parameters)
        return model.classifier(y)


def compare(page: Page, run: Run, path: Path, random: np.random.Generator) -> dict[str, Any]:
    """The largest differences of logits, open and closed, relative to logits above 1."""
    x = write_explore(run, path).x
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    store = json.loads(found[1])
    layers = sum(step["layer"] is not None for step in store["network"]["steps"])
    closed = sorted({int(layer) for layer in random.integers(0, layers, max(1, layers // 3))}) if layers else []
    samples = [0, len(x) // 2, len(x) - 1]
    computed = np.array(page.evaluate(RUN, [store, samples, closed]))  # (sample, way, output)
    model, precision = run.model, store["network"]["precision"]
    if precision == "float16":
        model.half()
    worst = []
    for ways, shut in (([0], set()), ([1, 2], set(closed))):
        expected = logits_in_python(model, x[samples], shut).numpy()
        apart = np.abs(computed[:, ways] - expected[:, None]) / np.maximum(1, np.abs(expected[:, None]))
        worst.append(float(apart.max()))
    return {"precision": precision, "closed_layers": len(closed), "open": worst[0], "closed": worst[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=100, metavar="N", help="the number of networks; 100 by default")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of data and networks; 0 by default")
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("explore_networks: chromium or Chrome must be installed")
    random, rows, seen = np.random.default_rng(options.seed), [], Counter[str]()
    torch.manual_seed(options.seed)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        page = playwright.chromium.launch(executable_path=browser).new_page()
        pages = files("verydeep.report.explore").joinpath("page")
        script = "\n".join(pages.joinpath(each).read_text("utf-8") for each in SCRIPTS)
        page.add_script_tag(content=f"{script}\nwindow.Explorer = Explorer;")
        data = make_data(folder, random)
        for number in range(options.networks):
            is_convolutional = number % 2 == 1
            shapes = ("grey", "colour") if is_convolutional else ("vector", "grey", "colour", "table")
            runs = data[shapes[number // 2 % len(shapes)]]
            run = runs[number // 4 % len(runs)]
            architect = convolutional if is_convolutional else fully_connected
            model = architect(run.model.input_shape, len(run.task.names), number // 2, random)
            changed = give_network(run, model, folder / f"network-{number}")
            found = compare(page, changed, folder / "page.html", random)
            seen.update(described := parts(model))
            rows.append({"data": run.path.name, "network": described} | found)
            what = f"{number + 1}: {run.path.name}, {', '.join(described)}, {found['precision']}"
            apart = f"{found['open']:.1e} open, {found['closed']:.1e} with {found['closed_layers']} closed"
            print(f"{what}: {apart}", flush=True)
            shutil.rmtree(changed.path)
    worst = max(max(row["open"], row["closed"]) for row in rows)
    passed = sum(max(row["open"], row["closed"]) <= TOLERANCE for row in rows)
    print(f"{passed} of {len(rows)} networks agree to {TOLERANCE}; the largest difference is {worst:.1e}")
    counts = {part: count for part, count in sorted(seen.items()) if not part.endswith("steps")}
    result = {"command": " ".join(["python benchmarks/explore_networks.py", *sys.argv[1:]]), "tolerance": TOLERANCE}
    result |= {"agree": passed, "of": len(rows), "largest_difference": worst, "networks_with": counts}
    write_result(OUT, result | {"networks": rows})
    if passed < len(rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
