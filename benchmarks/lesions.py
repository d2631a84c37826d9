"""The cost of closing each layer in turn: `python benchmarks/lesions.py [RUN]`.

Times the 49 lesions of a 50-layer highway network over 60,000 images against 49 full passes over the same images: a
lesion reuses what the layers below it have computed. The two are interleaved, 10,000 images at a time, so that other
load on the machine affects both. The network is that of a run, or an untrained one; the images are MNIST's training set
if it is available, else random numbers of the same shape, which take the same time.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from _result import write_result

from verydeep.analysis import lesion_study
from verydeep.cpu import cpu_settings
from verydeep.data import Split, load_dataset
from verydeep.errors import UserError
from verydeep.models import Network, create_model
from verydeep.training import ProcessGroup, Run, evaluate

PART = 10_000
OUT = Path(__file__).parents[1] / "results" / "lesions.json"


def network() -> Network:
    if len(sys.argv) > 1:
        return Run.load(sys.argv[1]).model
    torch.manual_seed(0)
    return create_model("highway-mlp", depth=50, gate_bias=-2.0).eval()


def images() -> tuple[str, Split]:
    try:
        return "mnist, training set", load_dataset("mnist").train
    except (UserError, OSError) as error:
        print(f"using random numbers instead of MNIST: {error}", file=sys.stderr)
        return "random numbers", Split(torch.rand(60_000, 1, 28, 28), torch.randint(0, 10, (60_000,)))


@dataclass
class Clock:
    """Wall-clock and processor time; other load on the machine affects only the former."""

    seconds: float = 0.0
    processor: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        start = time.perf_counter(), time.process_time()
        yield
        self.seconds += time.perf_counter() - start[0]
        self.processor += time.process_time() - start[1]

    def described(self) -> dict[str, float]:
        return {"seconds": round(self.seconds, 2), "processor_seconds": round(self.processor, 2)}


def passes(model: Network, data: Split, count: int) -> None:
    world = ProcessGroup.join("cpu")
    for _ in range(count):
        evaluate(model, data, world)


@cpu_settings(threads=1)
def main() -> None:
    model, (name, data) = network(), images()
    layers = model.highway_depth
    evaluate(model, Split(data.x[:2000], data.y[:2000]), ProcessGroup.join("cpu"))  # warms up

    full, lesions, samples = Clock(), Clock(), 0
    for x, y in zip(data.x.split(PART), data.y.split(PART), strict=True):
        with full.running():
            passes(model, Split(x, y), layers)
        with lesions.running():
            samples += lesion_study(model, Split(x, y)).samples

    result = {
        "what": f"{layers} lesions of a {model.config.depth}-layer highway network, and as many full passes",
        "data": name,
        "samples": samples,
        "threads": 1,
        "full_passes": full.described(),
        "lesions": lesions.described(),
        "ratio": round(lesions.seconds / full.seconds, 4),
        "processor_ratio": round(lesions.processor / full.processor, 4),
    }
    write_result(OUT, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
