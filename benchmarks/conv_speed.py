"""How fast the convolutional networks of the tables are: `python benchmarks/conv_speed.py [network ...]`.

Training: a step is the loss of a batch of random images with dropout, its gradients, and the update of momentum SGD.
Each network is compared with the same network in torch's operations, whose images have their channels first or last,
whichever is faster. Inference: one image, compared with the same eager network and, if it is installed, ONNX Runtime.

All competitors run on one thread and take turns in rounds. Times are CPU times, which are those of a clock on an idle
machine and depend less on other work. Reported are the minimum over the rounds, images per second at the minimum, how
many times as long the others take at their minima, and the quartiles of the ratios of the rounds.
Operations are counted as if every convolution were computed directly, six per multiply-add of the forward pass; they
are compared with the machine's fastest matrix product, and Winograd's transforms can exceed it.
"""

import copy
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from typing import Any

import torch
import torch.nn.functional as F
from _result import write_result
from torch import Tensor

from verydeep.bench import matmul_peak
from verydeep.models import ConvNet, create_model, multiply_adds

OUT = Path(__file__).parents[1] / "results" / "benchmarks" / "conv-speed.json"
TRAINED = (
    *("highway-mnist-16", "highway-mnist-32", "highway-a", "highway-b", "highway-c", "highway-19-nin"),
    *("fitnet-a", "fitnet-b", "all-cnn-c", "nin", "maxout"),
)
SINGLE = ("highway-mnist-16", "highway-a", "highway-b")
LEAST_IN_TRAINING = dict.fromkeys(TRAINED, 2.0) | {"nin": 1.3, "maxout": 1.0}  # times as fast as eager
BATCH, ROUNDS, SINGLE_ROUNDS = 32, 5, 60
EAGER = ("eager, channels first", "eager, channels last")


def networks(name: str) -> dict[str, ConvNet]:
    """Our network, and the same one in torch's operations in both memory formats."""
    torch.manual_seed(0)
    ours = create_model(name)
    assert isinstance(ours, ConvNet)
    first, last = copy.deepcopy(ours), copy.deepcopy(ours)
    first.backend = last.backend = "reference"
    return {"ours": ours, EAGER[0]: first, EAGER[1]: last.to(memory_format=torch.channels_last)}


def as_seen_by(competitor: str, x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last) if competitor == EAGER[1] else x


def training_step(model: ConvNet, x: Tensor, y: Tensor) -> Callable[[], None]:
    optimiser = torch.optim.SGD(model.parameters(), 0.01, 0.9, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimiser.step()

    return step


def inference(model: ConvNet, x: Tensor) -> Callable[[], None]:
    model.eval()

    @torch.no_grad()
    def infer() -> None:
        model(x)

    return infer


def onnx_inference(model: ConvNet, x: Tensor, folder: str) -> Callable[[], None] | None:
    """The network in ONNX Runtime on one thread; None if it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    from verydeep.interop import export_onnx

    path = Path(folder, "network.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export_onnx(copy.deepcopy(model), torch.randn(4, *model.input_shape), path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    image = {"x": x.numpy()}
    return lambda: session.run(None, image)


def take_turns(competitors: dict[str, Callable[[], None]], rounds: int, warm_up: int = 1) -> dict[str, list[float]]:
    """CPU seconds of every competitor in every round; `warm_up` is the number of runs before each that is measured."""
    times: dict[str, list[float]] = {name: [] for name in competitors}
    for run in competitors.values():
        run()
    for _ in range(rounds):
        for name, run in competitors.items():
            for _ in range(warm_up):
                run()
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return times


def compare(times: dict[str, list[float]], images: int) -> dict[str, Any]:
    """Our minimum, and how many times as long the others take."""
    ours = times["ours"]
    result: dict[str, Any] = {
        "milliseconds": round(1e3 * min(ours), 3),
        "median_milliseconds": round(1e3 * sorted(ours)[len(ours) // 2], 3),
        "images_per_second": round(images / min(ours), 1),
        "times_as_long": {},
    }
    for name in (name for name in times if name != "ours"):
        ratios = [theirs / mine for theirs, mine in zip(times[name], ours, strict=True)]
        lower, median, upper = (round(value, 2) for value in quantiles(ratios, n=4))
        minimum = round(min(times[name]) / min(ours), 2)
        result["times_as_long"][name] = {"minimum": minimum, "quartiles": [lower, median, upper]}
    eager = min(result["times_as_long"][name]["minimum"] for name in EAGER)
    return result | {"times_as_fast_as_eager": eager}


def measure_training(name: str) -> dict[str, Any]:
    models = networks(name)
    x, y = torch.randn(BATCH, *models["ours"].input_shape), torch.randint(0, 10, (BATCH,))
    product = matmul_peak(0.3)["gflops"]
    steps = {key: training_step(model, as_seen_by(key, x), y) for key, model in models.items()}
    result = compare(take_turns(steps, ROUNDS, warm_up=0), BATCH)
    gflops = 6e-9 * multiply_adds(models["ours"]) * result["images_per_second"]
    product = max(product, matmul_peak(0.3)["gflops"])
    least = LEAST_IN_TRAINING[name]
    return {
        "network": name,
        **result,
        "least_wanted": least,
        "is_reached": result["times_as_fast_as_eager"] >= least,
        "gflops": round(gflops, 1),
        "of_matrix_product": round(gflops / product, 2),
    }


def measure_single(name: str, folder: str) -> dict[str, Any]:
    models = networks(name)
    x = torch.randn(1, *models["ours"].input_shape)
    runs = {key: inference(model, as_seen_by(key, x)) for key, model in models.items()}
    onnx = onnx_inference(models["ours"], x, folder)
    if onnx is not None:
        runs["ONNX Runtime"] = onnx
    result = compare(take_turns(runs, SINGLE_ROUNDS), 1)
    reached = result["times_as_fast_as_eager"] >= 2
    if onnx is not None:
        reached = reached and result["times_as_long"]["ONNX Runtime"]["minimum"] >= 1
    return {"network": name, **result, "least_wanted": "ONNX Runtime and 2.0 of eager", "is_reached": reached}


def main() -> None:
    chosen = sys.argv[1:]
    torch.set_num_threads(1)
    load = [round(os.getloadavg()[0], 2)]
    training, single = [], []
    for name in TRAINED:
        if not chosen or name in chosen:
            training.append(measure_training(name))
            print(json.dumps(training[-1]), flush=True)
    for name in SINGLE:
        if not chosen or name in chosen:
            with tempfile.TemporaryDirectory() as folder:
                single.append(measure_single(name, folder))
            print(json.dumps(single[-1]), flush=True)
    if chosen:
        return
    what = (
        "training and single-image inference of the convolutional networks on one thread, CPU time in interleaved "
        "rounds; ratios of minima, and quartiles of the ratios of single rounds"
    )
    sizes = {"batch": BATCH, "rounds": ROUNDS, "rounds_of_single_images": SINGLE_ROUNDS, "cores": os.cpu_count()}
    load.append(round(os.getloadavg()[0], 2))
    results = {"training": training, "single_images": single, "load_average_before_and_after": load}
    write_result(OUT, {"what": what, **sizes, **results})


if __name__ == "__main__":
    main()
