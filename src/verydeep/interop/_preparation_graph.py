"""The preparation of raw samples, and the reading of answers, as nodes of an ONNX graph.

The nodes compute what `TablePreparation`, `ArrayPreparation` and `Predictor` compute, in the same precision: statistics
of raw values are float64, the inputs of the network float32.
"""

import math
from itertools import product
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from verydeep.data import (
    MISSING,
    PERIODS,
    ArrayPreparation,
    CategoryColumn,
    DateColumn,
    NewSamples,
    NumberColumn,
    Table,
    TablePreparation,
    Task,
    contrast_factor,
    unpack_matrix,
)

ANSWERS = {"classification": "label", "multilabel": "labels", "regression": "values"}
PROBABILITIES = "probabilities"
_DTYPES = {torch.uint8: TensorProto.UINT8, torch.float32: TensorProto.FLOAT, torch.float64: TensorProto.DOUBLE}
_GAPS = sorted({"".join(letters) for word in MISSING for letters in product(*((c, c.upper()) for c in word))})


class Graph:
    """Nodes, constants, inputs and outputs of a graph, in the order in which they were added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def add(self, operator: str, *inputs: str, output: str | None = None, domain: str = "", **settings: Any) -> str:  # noqa: ANN401
        """Add a node and return the name of its result."""
        name = output or f"verydeep/{len(self.nodes)}/{operator}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], domain=domain, **settings))
        return name

    def constant(self, values: Any, dtype: Any = None) -> str:  # noqa: ANN401 - an array
        """Add a constant and return its name."""
        name = f"verydeep/constant/{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def cast(self, value: str, dtype: int) -> str:
        return self.add("Cast", value, to=dtype)

    def input(self, name: str, dtype: int, shape: tuple[int, ...] = ()) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, dtype, ("batch", *shape)))
        return name

    def output(self, name: str, dtype: int, shape: tuple[int, ...] = ()) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, dtype, ("batch", *shape)))


def input_names(columns: tuple[str, ...], task: Task) -> dict[str, str]:
    """The input of each column: its name, unless an output has it."""
    taken = {ANSWERS[task.kind], PROBABILITIES}
    return {name: f"{name} (input)" if name in taken else name for name in columns}


def add_table(graph: Graph, preparation: TablePreparation, task: Task) -> str:
    """Add one input per column, `(batch,)`, and its encoding; returns the prepared samples, float32."""
    names = input_names(preparation.names, task)
    blocks = []
    for column in preparation.columns:
        if isinstance(column, CategoryColumn):
            blocks += _add_category(graph, column, graph.input(names[column.name], TensorProto.STRING))
        else:
            blocks += _add_number(graph, column, graph.input(names[column.name], TensorProto.DOUBLE))
    return graph.add("Concat", *blocks, axis=1)


def _add_number(graph: Graph, column: NumberColumn | DateColumn, value: str) -> list[str]:
    """Features of a number, or of a date as days since 1970, each `(batch, 1)`."""
    column_of_one = graph.add("Unsqueeze", value, graph.constant([1], np.int64))
    missing = graph.add("IsNaN", column_of_one)
    filled = graph.add("Where", missing, graph.constant(column.fill, np.float64), column_of_one)
    centred = graph.add("Sub", filled, graph.constant(column.mean, np.float64))
    blocks = [graph.add("Div", centred, graph.constant(column.deviation, np.float64))]
    for cycle in column.cycles if isinstance(column, DateColumn) else ():
        turns = graph.add("Div", filled, graph.constant(PERIODS[cycle], np.float64))
        phase = graph.add("Sub", turns, graph.add("Floor", turns))  # exact in float64, then accurate in float32
        angle = graph.cast(graph.add("Mul", phase, graph.constant(2 * np.pi, np.float64)), TensorProto.FLOAT)
        blocks += [graph.add("Sin", angle), graph.add("Cos", angle)]
    blocks += [missing] if column.gaps else []
    return [graph.cast(block, TensorProto.FLOAT) for block in blocks]


def _add_category(graph: Graph, column: CategoryColumn, value: str) -> list[str]:
    """One-hot features, `(batch, values)`; a missing cell is the most frequent value, a new value is all zeros."""
    count, fill = len(column.values), column.values.index(column.fill)
    numbers = graph.add(
        "LabelEncoder",
        value,
        domain="ai.onnx.ml",
        keys_strings=[*column.values, *_GAPS],
        values_int64s=[*range(count), *(fill for _ in _GAPS)],
        default_int64=count,  # outside the range of OneHot, hence all zeros
    )
    blocks = [graph.add("OneHot", numbers, graph.constant(count, np.int64), graph.constant([0, 1], np.float32))]
    if column.gaps:
        flags = graph.add(
            "LabelEncoder",
            value,
            domain="ai.onnx.ml",
            keys_strings=_GAPS,
            values_floats=[1.0 for _ in _GAPS],
            default_float=0.0,
        )
        blocks.append(graph.add("Unsqueeze", flags, graph.constant([1], np.int64)))
    return blocks


def add_array(graph: Graph, preparation: ArrayPreparation | None, shape: tuple[int, ...], dtype: torch.dtype) -> str:
    """Add the input of arrays or images and their preparation; returns the prepared samples, float32."""
    value = graph.input("pixels" if dtype == torch.uint8 else "x", _DTYPES[dtype], shape)
    if preparation is None:
        return graph.cast(value, TensorProto.FLOAT)
    if preparation.full is not None:
        value = graph.cast(value, TensorProto.FLOAT)
        value = graph.add("Div", value, graph.constant(preparation.full, np.float32))
    if preparation.contrast:
        value = _add_contrast(graph, graph.cast(value, TensorProto.FLOAT), len(shape))
    if preparation.contrast_norm is not None:
        factor = contrast_factor(preparation.contrast_norm, shape)
        value = graph.add("Mul", value, graph.constant(factor, np.float32))
    statistics = np.float32 if preparation.contrast else np.float64
    if preparation.mean:
        value = graph.cast(value, TensorProto.FLOAT if preparation.contrast else TensorProto.DOUBLE)
        value = graph.add("Sub", value, graph.constant(np.reshape(preparation.mean, shape), statistics))
    if preparation.deviation:
        value = graph.cast(value, TensorProto.DOUBLE)
        value = graph.add("Div", value, graph.constant(np.reshape(preparation.deviation, shape), np.float64))
    if preparation.whitening:
        matrix = unpack_matrix(preparation.whitening, math.prod(shape)).numpy()
        flat = graph.add("Flatten", graph.cast(value, TensorProto.FLOAT), axis=1)
        whitened = graph.add("MatMul", flat, graph.constant(matrix, np.float32))
        value = graph.add("Reshape", whitened, graph.constant([-1, *shape], np.int64))
    return graph.cast(value, TensorProto.FLOAT)


def _add_contrast(graph: Graph, value: str, dimensions: int) -> str:
    axes = graph.constant(list(range(1, dimensions + 1)), np.int64)
    centred = graph.add("Sub", value, graph.add("ReduceMean", value, axes, keepdims=1))
    variance = graph.add("ReduceMean", graph.add("Mul", centred, centred), axes, keepdims=1)
    deviation = graph.add("Sqrt", variance)
    visible = graph.add("Greater", deviation, graph.constant(1e-6, np.float32))
    return graph.add("Div", centred, graph.add("Where", visible, deviation, graph.constant(1.0, np.float32)))


def add_answers(graph: Graph, outputs: str, task: Task) -> None:
    """Add the outputs of the graph: labels with their probabilities, or values in their original units."""
    answer, count = ANSWERS[task.kind], task.outputs
    if task.kind == "regression":
        scaled = graph.add("Mul", graph.cast(outputs, TensorProto.DOUBLE), graph.constant(task.deviation, np.float64))
        graph.add("Add", scaled, graph.constant(task.mean, np.float64), output=answer)
        graph.output(answer, TensorProto.DOUBLE, (count,))
        return
    if task.kind == "classification":
        best = graph.add("ArgMax", outputs, axis=1, keepdims=0)
        graph.add("Gather", graph.constant(task.names, object), best, output=answer)
        graph.output(answer, TensorProto.STRING)
        graph.add("Softmax", outputs, axis=1, output=PROBABILITIES)
    else:
        positive = graph.add("Greater", outputs, graph.constant(0.0, np.float32))
        graph.add("Cast", positive, to=TensorProto.INT64, output=answer)
        graph.output(answer, TensorProto.INT64, (count,))
        graph.add("Sigmoid", outputs, output=PROBABILITIES)
    graph.output(PROBABILITIES, TensorProto.FLOAT, (count,))


def feed(
    samples: NewSamples, preparation: TablePreparation | ArrayPreparation | None, task: Task
) -> dict[str, np.ndarray]:
    """Raw samples as the inputs of the graph: numbers with NaN and text with empty strings where cells are missing."""
    if not isinstance(preparation, TablePreparation):
        assert isinstance(samples.raw, torch.Tensor)
        return {"pixels" if samples.raw.dtype == torch.uint8 else "x": samples.raw.numpy()}
    assert isinstance(samples.raw, Table)
    values, names = {}, input_names(preparation.names, task)
    for column in preparation.columns:
        if isinstance(column, CategoryColumn):
            cells = samples.raw.as_text(column.name)
            values[names[column.name]] = cells.expand(cells.normalised, "", object)
        else:
            values[names[column.name]] = samples.raw.numbers(column.name, column.form)
    return values
