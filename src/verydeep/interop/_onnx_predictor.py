"""Export of a run to ONNX with everything that `predict` does: raw rows or pixels in, answers out."""

import json
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import compose, helper

from verydeep.config import to_dict
from verydeep.data import NewSamples, Rows, Table, TablePreparation
from verydeep.errors import UserError
from verydeep.files import write_atomic
from verydeep.interop._onnx import TOLERANCE, OnnxCheck, onnx_bytes
from verydeep.interop._preparation_graph import (
    ANSWERS,
    PROBABILITIES,
    Graph,
    add_answers,
    add_array,
    add_table,
    feed,
    input_names,
)
from verydeep.training import Predictor, Run

SAMPLES = 100  # compared at most
_ML_OPSET = 2  # the first with LabelEncoder for text and numbers


def write_predictor(run: Run, rows: Rows, path: Path) -> OnnxCheck:
    """Export a run, if ONNX Runtime predicts the same as the run for these rows."""
    predictor = Predictor(run)
    samples = _first(predictor, rows)
    data = _model(predictor, samples).SerializeToString()
    sizes = tuple(sorted({1, min(len(samples), 7), len(samples)}))
    difference = max(_difference(predictor, data, samples, size) for size in sizes)
    if not difference <= TOLERANCE:
        raise UserError(
            f"{path} was not written: onnxruntime differs from verydeep predict by {difference:.1e}, "
            f"more than {TOLERANCE}"
        )
    write_atomic(path, data)
    return OnnxCheck(len(samples), sizes, difference, len(data))


def _first(predictor: Predictor, rows: Rows) -> NewSamples:
    samples = next(iter(predictor.read(rows)))
    if not len(samples):
        raise UserError("no rows to compare on; give some as --data")
    return _some(samples, slice(0, SAMPLES))


def _some(samples: NewSamples, part: slice) -> NewSamples:
    raw = samples.raw
    chosen = raw[torch.arange(len(raw))[part]] if isinstance(raw, Table) else raw[part]
    return NewSamples(chosen, samples.x[part], samples.files[part])


def _model(predictor: Predictor, samples: NewSamples) -> onnx.ModelProto:
    network = compose.add_prefix(onnx.load_from_string(onnx_bytes(predictor.model.cpu().eval(), {})), "network/")
    graph, preparation, task = Graph(), predictor.preparation, predictor.task
    if isinstance(preparation, TablePreparation):
        prepared = add_table(graph, preparation, task)
    else:
        assert isinstance(samples.raw, torch.Tensor)
        prepared = add_array(graph, preparation, tuple(samples.raw.shape[1:]), samples.raw.dtype)
    graph.add("Identity", prepared, output=network.graph.input[0].name)
    graph.nodes += network.graph.node
    add_answers(graph, network.graph.output[0].name, task)
    opsets = [entry for entry in network.opset_import if entry.domain != "ai.onnx.ml"]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "verydeep", graph.inputs, graph.outputs, [*graph.constants, *network.graph.initializer]
        ),
        opset_imports=[*opsets, helper.make_opsetid("ai.onnx.ml", _ML_OPSET)],
        functions=list(network.functions),
        ir_version=network.ir_version,
        producer_name="verydeep",
    )
    helper.set_model_props(model, _metadata(predictor))
    onnx.checker.check_model(model)
    return model


def _metadata(predictor: Predictor) -> dict[str, str]:
    preparation, task = predictor.preparation, predictor.task
    values = {"task": task.kind, "names": task.names, "preparation": preparation and to_dict(preparation)}
    if task.kind == "classification":
        values["classes"] = task.names
    if isinstance(preparation, TablePreparation):
        values["inputs"] = input_names(preparation.names, task)
    return {f"verydeep.{key}": json.dumps(value, ensure_ascii=False) for key, value in values.items()}


def _difference(predictor: Predictor, data: bytes, samples: NewSamples, size: int) -> float:
    """The largest difference from the run's own predictions over all samples, in batches of `size`."""
    import onnxruntime  # type: ignore[import-untyped]

    task = predictor.task
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = {name: list[np.ndarray]() for name in names}
    for start in range(0, len(samples), size):
        part = _some(samples, slice(start, start + size))
        for name, values in zip(names, session.run(names, feed(part, predictor.preparation, task)), strict=True):
            found[name].append(values)
    answers, expected = np.concatenate(found[ANSWERS[task.kind]]), predictor.answer(samples)
    if expected.probabilities is None:
        return float(np.abs((answers - expected.answers) / np.array(task.deviation)).max())
    probabilities = np.concatenate(found[PROBABILITIES])
    return float(
        max(np.abs(probabilities - expected.probabilities).max(), _doubt(answers, expected.probabilities, task.names))
    )


def _doubt(answers: np.ndarray, probabilities: np.ndarray, names: tuple[str, ...]) -> float:
    """How far answers are from being the most probable ones; 0 if all of them are, tiny for a tie."""
    if answers.ndim == 2:
        return float(np.abs(probabilities - 0.5)[answers != (probabilities > 0.5)].max(initial=0.0))
    chosen = probabilities[np.arange(len(answers)), [names.index(answer) for answer in answers]]
    return float((probabilities.max(1) - chosen).max())
