"""Predictions for new rows and images: the same from the command line, Python and ONNX Runtime."""

import csv
import io
import json
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest
import torch
from PIL import Image

from verydeep.cli import main
from verydeep.data import DataConfig, Dataset
from verydeep.errors import UserError
from verydeep.models import save_weights
from verydeep.processes import python_command
from verydeep.training import ModelConfig, OptimConfig, Predictor, Run, TrainConfig, train

FIXTURES = Path(__file__).parents[1] / "fixtures" / "runs-0.1.0"
NAMES = ("id", "size", "colour", "zone", "share", "day", "label", "price", "weight", "is red", "is big")
FEATURES = ("size", "colour", "zone", "share", "day")
TARGETS = {"classification": ("label",), "regression": ("price", "weight"), "multilabel": ("is red", "is big")}


def table(rows: int, seed: int) -> list[dict[str, str]]:
    """Numbers, categories, percentages and dates, with gaps; 01 and 1 are different zones."""
    draw = random.Random(seed)
    found = []
    for number in range(rows):
        size, colour = round(draw.gauss(3, 1), 3), draw.choice(["red", "blue", "green"])
        cells = [f"{number:05d}", size, colour, draw.choice(["01", "1", "2"]), f"{draw.randint(1, 99)}%"]
        cells += [f"20{draw.randint(10, 20)}-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}"]
        cells += ["big" if size > 3 else "small", round(100 * size, 2), round(1e6 - size, 3)]
        cells += [int(colour == "red"), int(size > 3)]
        row = dict(zip(NAMES, map(str, cells), strict=True))
        found.append(row | {name: "" for name in FEATURES if draw.random() < 0.05})
    return found


def write(path: Path, rows: list[dict[str, str]], names: tuple[str, ...] = NAMES) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def trained(data: DataConfig, folder: Path) -> Run:
    model, optim = ModelConfig("highway-mlp", depth=3, width=8), OptimConfig(lr=0.02)
    return train(TrainConfig(data, model, optim, epochs=3, batch_size=20, threads=1), folder, progress=False)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    source = write(folder / "train.csv", table(200, 0))
    found = {}
    for kind, target in TARGETS.items():
        ignore = tuple(name for name in NAMES if name not in (*FEATURES, *target))
        data = DataConfig(str(source), target, ignore=ignore, categorical=("zone",))
        found[kind] = trained(data, folder / kind)
        assert found[kind].task.kind == kind
    return found


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("new") / "new.csv", table(40, 1), ("id", *FEATURES))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder, draw = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for number in range(40):
        name = "dark" if number % 2 else "light"
        (folder / "images" / name).mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 120, (6, 5, 3)) + 100 * (name == "light")
        Image.fromarray(pixels.astype(np.uint8)).save(folder / "images" / name / f"{number}.png")
    return trained(DataConfig(str(folder / "images")), folder / "run")


def predicted(run: Run, *arguments: object) -> list[dict[str, str]]:
    """What the command writes."""
    out = run.path.parent / "out.csv"
    assert main(["predict", str(run.path), *map(str, arguments), "-o", str(out)]) == 0
    return read_rows(out)


def column(rows: list[dict[str, str]], start: str) -> np.ndarray:
    return np.array([[float(value) for name, value in row.items() if name.startswith(start)] for row in rows])


def test_classes_come_with_the_probability_of_each(runs: dict[str, Run], new: Path) -> None:
    rows = predicted(runs["classification"], new)
    assert list(rows[0]) == ["predicted_label", "probability_big", "probability_small"]
    chances = column(rows, "probability_")
    assert len(rows) == 40
    np.testing.assert_allclose(chances.sum(1), 1, atol=1e-6)
    assert [row["predicted_label"] for row in rows] == [("big", "small")[i] for i in chances.argmax(1)]


def test_numbers_are_in_their_original_units(runs: dict[str, Run], new: Path) -> None:
    rows = predicted(runs["regression"], new)
    assert list(rows[0]) == ["predicted_price", "predicted_weight"]
    values = column(rows, "predicted_")
    assert np.all((values[:, 0] > -500) & (values[:, 0] < 1000))
    assert np.all(np.abs(values[:, 1] - 1e6) < 20)
    assert np.array_equal(runs["regression"].predict(new), values)  # written without rounding


def test_labels_are_0_or_1_with_a_probability(runs: dict[str, Run], new: Path) -> None:
    rows = predicted(runs["multilabel"], new)
    assert list(rows[0]) == [f"{what}_{name}" for what in ("predicted", "probability") for name in ("is red", "is big")]
    assert np.array_equal(column(rows, "predicted_"), column(rows, "probability_") > 0.5)
    assert runs["multilabel"].predict(new).dtype == np.int64


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def as_frame(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"zone": str, "id": str})


@pytest.mark.parametrize(
    "form",
    [
        as_frame,
        lambda path: pl.read_csv(path, schema_overrides={"zone": pl.String}),
        lambda path: as_frame(path).to_dict("records"),
        read_rows,
        str,
    ],
    ids=["pandas", "polars", "numbers in dictionaries", "text in dictionaries", "path"],
)
@pytest.mark.parametrize("kind", TARGETS)
def test_rows_may_have_any_form(runs: dict[str, Run], new: Path, kind: str, form: Any) -> None:
    run = runs[kind]
    assert np.array_equal(run.predict(form(new)), run.predict(new))


def test_one_target_gives_one_number_per_row(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(1000, 1, (60, 3))
    np.savez(tmp_path / "x.npz", x=x, y=x[:, 0] + 0.5)
    run = trained(DataConfig(str(tmp_path / "x.npz"), preprocess="standardise"), tmp_path / "run")
    assert run.predict(x).shape == (60,)
    for same in (torch.from_numpy(x), x.tolist(), tmp_path / "x.npz", pd.DataFrame(x)):
        assert np.array_equal(run.predict(same), run.predict(x))
    with pytest.raises(UserError, match="predicts numbers, which have no probabilities"):
        run.predict_proba(x)
    with pytest.raises(UserError, match=r"rows: samples have shape \(2,\), the training data has \(3,\)"):
        run.predict(x[:, :2])


def test_an_array_has_the_columns_of_a_table_of_numbers(runs: dict[str, Run], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("b,a,y\n" + "".join(f"{i},{i % 5},{'uv'[i % 2]}\n" for i in range(40)))
    run = trained(DataConfig(str(tmp_path / "t.csv")), tmp_path / "run")
    rows = np.array([[3.0, 1.0], [30.0, np.nan]])
    assert np.array_equal(run.predict_proba(rows), run.predict_proba(pd.DataFrame(rows, columns=["b", "a"])))
    with pytest.raises(UserError, match=r"expected an array of shape \(rows, 2\), got \(2, 1\): 'b', 'a'"):
        run.predict(rows[:, :1])
    with pytest.raises(UserError, match="are not all numbers; give a DataFrame"):
        runs["classification"].predict(np.zeros((2, 5)))


def test_every_format_holds_the_same(runs: dict[str, Run], new: Path, tmp_path: Path) -> None:
    run = runs["classification"]
    expected = predicted(run, new, "--keep", "id")
    for suffix in ("parquet", "jsonl", "npz"):
        assert main(["predict", str(run.path), str(new), "--keep", "id", "-o", str(tmp_path / f"o.{suffix}")]) == 0
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [{name: str(value) for name, value in line.items()} for line in lines] == expected
    parquet = pd.read_parquet(tmp_path / "o.parquet")
    assert parquet["id"].tolist() == [row["id"] for row in expected]
    assert np.array_equal(parquet[["probability_big", "probability_small"]].to_numpy(), run.predict_proba(new))
    with np.load(tmp_path / "o.npz") as arrays:
        assert np.array_equal(arrays["probabilities"], run.predict_proba(new))
        assert np.array_equal(arrays["predicted"], run.predict(new))
        assert arrays["names"].tolist() == ["big", "small"]
        assert arrays["id"].tolist() == parquet["id"].tolist()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_without_a_file_rows_are_printed(
    runs: dict[str, Run], new: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs["classification"]
    expected = predicted(run, new)
    capsys.readouterr()
    assert main(["predict", str(run.path), str(new)]) == 0
    assert list(csv.DictReader(io.StringIO(capsys.readouterr().out))) == expected
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(new.read_bytes())))
    assert main(["predict", str(run.path), "-", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["predicted_label"] for line in lines] == [row["predicted_label"] for row in expected]


def test_columns_are_kept_as_they_are_written(runs: dict[str, Run], new: Path, tmp_path: Path) -> None:
    run = runs["classification"]
    rows = predicted(run, new, "--keep", "id,size,zone")
    given = read_rows(new)
    for name in ("id", "size", "zone"):
        assert [row[name] for row in rows] == [row[name] for row in given]
    everything = predicted(run, new, "--keep", "all")
    assert list(everything[0])[:6] == ["id", *FEATURES]
    assert [row["probability_big"] for row in everything] == [row["probability_big"] for row in rows]
    numbers = [2**62 + number for number in range(40)]  # float64 has no such numbers
    frame = as_frame(new).assign(id=numbers)
    pa.parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "new.parquet")
    assert [row["id"] for row in predicted(run, tmp_path / "new.parquet", "--keep", "id")] == list(map(str, numbers))


def test_columns_that_are_missing_or_not_used_are_named(
    runs: dict[str, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, rows = runs["classification"], table(5, 2)
    file = write(tmp_path / "some.csv", rows, ("id", "size", "share", "zone"))
    assert main(["predict", str(run.path), str(file), "-o", str(tmp_path / "o.csv")]) == 2
    assert f"{file}: no columns 'colour', 'day'; it has 'id', 'size', 'share', 'zone'\n" in capsys.readouterr().err
    assert not (tmp_path / "o.csv").exists()
    file = write(tmp_path / "more.csv", [row | {"mood": "good", "note": ""} for row in rows], (*NAMES, "mood", "note"))
    assert main(["predict", str(run.path), str(file), "--keep", "note", "-o", str(tmp_path / "o.csv")]) == 0
    assert capsys.readouterr().err == f"verydeep: the column 'mood' of {file} will not be used\n"
    assert main(["predict", str(run.path), str(file), "--keep", "moo"]) == 2
    assert "--keep: " in (error := capsys.readouterr().err)
    assert error.endswith("has no column 'moo'; did you mean 'mood'?\n")


def test_categories_that_are_new_are_counted(runs: dict[str, Run], new: Path) -> None:
    frame = as_frame(new)
    frame.loc[:6, "colour"] = "pink"
    frame.loc[7, "colour"] = "grey"
    with pytest.warns(UserWarning, match=r"column 'colour' has values in 8 rows .*: 'pink' \(7\), 'grey' \(1\);"):
        runs["classification"].predict(frame)


def test_rows_are_read_and_predicted_part_by_part(runs: dict[str, Run], tmp_path: Path) -> None:
    file = write(tmp_path / "many.csv", table(20_000, 3))
    predictor = Predictor(runs["regression"])
    with file.open("rb") as stream:
        parts = predictor.parts(stream)
        first = next(parts)
        assert stream.tell() < file.stat().st_size / 4
        everything = [first.answers, *(part.answers for part in parts)]
    assert len(everything) > 4
    np.testing.assert_allclose(np.concatenate(everything), runs["regression"].predict(file), rtol=1e-6)


def test_a_table_without_rows_gives_a_header(
    runs: dict[str, Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "none.csv", [])
    assert main(["predict", str(runs["classification"].path), str(file)]) == 0
    assert capsys.readouterr().out == "predicted_label,probability_big,probability_small\n"
    assert runs["regression"].predict(file).shape == (0, 2)


def test_images_are_predicted_by_name(pictures: Run, tmp_path: Path) -> None:
    images = Path(pictures.config.data.source)
    rows = predicted(pictures, images)
    assert [row["file"] for row in rows] == sorted(str(file.relative_to(images)) for file in images.rglob("*.png"))
    some = [images / "dark" / "1.png", images / "light" / "2.png"]
    chosen = predicted(pictures, *some)
    assert [row["file"] for row in chosen] == [str(path) for path in some]
    by_name = {row["file"]: row["probability_dark"] for row in rows}
    assert [row["probability_dark"] for row in chosen] == pytest.approx([by_name["dark/1.png"], by_name["light/2.png"]])
    assert pictures.predict(some).tolist() == [row["predicted_class"] for row in chosen]
    pixels = np.stack([np.array(Image.open(path)) for path in some])
    np.testing.assert_allclose(pictures.predict_proba(pixels), pictures.predict_proba(some), atol=1e-6)


def test_runs_of_earlier_versions_predict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES)
    run = Run.load("own-table/seed-5")
    rows = pd.read_csv("flowers.csv")
    target = run.config.data.target[0]
    right = run.predict(rows.drop(columns=target)) == rows[target].astype(str)
    assert right.mean() > 0.6
    digits = Run.load("fully-connected")
    assert digits.predict_proba(np.zeros((3, 8, 8), dtype=np.uint8)).shape == (3, 10)


def test_tensors_given_in_python_are_taken_as_they_are(tiny: Dataset, tmp_path: Path) -> None:
    config = TrainConfig(DataConfig("tiny"), ModelConfig("highway-mlp", depth=3, width=6), epochs=1, batch_size=10)
    run = train(config, tmp_path / "run", dataset=tiny, progress=False)
    with torch.inference_mode():
        expected = run.model(tiny.test.x).softmax(1).numpy()
    np.testing.assert_allclose(run.predict_proba(tiny.test.x), expected, atol=1e-6)
    assert set(run.predict(tiny.test.x)) <= {"a", "b", "c"}
    with pytest.raises(UserError, match="trained on tensors given in Python"):
        run.predict("new.csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "nowhere.csv: no such file or folder"),
        (["{new}", "-o", "{new}"], "is the file with the new rows; choose another name"),
        (["{new}", "-o", "out.txt"], "-o out.txt: expected a name ending in .csv, .parquet, .npz, .jsonl"),
        (["{new}", "-"], "standard input (-) cannot be combined with files"),
        (["{new}", "{new}"], "expected one table with the columns 'size'"),
        (["{new}", "--delimiter", ";"], "row 1 has no ';'"),
        ([], "missing: NEW"),
    ],
)
def test_mistakes_are_one_line(
    runs: dict[str, Run], new: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = new.read_bytes()
    given = [argument.format(new=new) for argument in arguments]
    assert main(["predict", str(runs["classification"].path), *given]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert new.read_bytes() == before


@pytest.mark.parametrize("kind", ["classification", "regression", "multilabel"])
def test_an_answer_that_is_not_finite_is_an_error(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"a": str(i % 7), "y": str(i / 8) if kind == "regression" else str(i % 2)} for i in range(40)]
    rows = [row | {"z": row["y"]} for row in rows]
    target = ("y",) if kind == "classification" else ("y", "z")
    data = DataConfig(
        str(write(tmp_path / "t.csv", rows, ("a", "y", "z"))), target, ignore=() if "z" in target else ("z",)
    )
    model = ModelConfig("highway-mlp", depth=3, width=8, activation="relu")
    run = train(TrainConfig(data, model, epochs=1, threads=1), tmp_path / "run", progress=False)
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter.abs_().add_(1)
    save_weights(run.model, run.path / "model.safetensors")
    rows[3]["a"] = "3e38"
    new, out = write(tmp_path / "new.csv", rows, ("a",)), tmp_path / "out.csv"
    assert main(["predict", str(run.path), str(new), "-o", str(out)]) == 2
    assert capsys.readouterr().err.startswith(f"verydeep: {new}: row 5: the network's answer is not finite")
    assert not out.exists()


def test_images_and_tables_are_not_confused(
    runs: dict[str, Run], pictures: Run, new: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(pictures.path), str(new)]) == 2
    assert "is a table, but the network was trained on samples of shape (3, 6, 5)" in capsys.readouterr().err
    assert main(["predict", str(pictures.path), pictures.config.data.source, "--keep", "id"]) == 2
    assert "--keep is for the columns of a table" in capsys.readouterr().err
    assert main(["predict", str(runs["regression"].path), pictures.config.data.source]) == 2
    assert "is not a table; the network was trained on a table with the columns" in capsys.readouterr().err


@pytest.mark.slow
def test_a_closed_pipe_ends_the_command_quietly(runs: dict[str, Run], tmp_path: Path) -> None:
    file = write(tmp_path / "many.csv", table(20_000, 3))
    command = python_command("-m", "verydeep", "predict", str(runs["classification"].path), str(file), "--threads", "1")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


WITHOUT_TORCH = """
import csv, json, sys
sys.modules["torch"] = None
import numpy, onnxruntime

def answers(file, inputs):
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    outputs = session.run(None, {entry.name: inputs[entry.name] for entry in session.get_inputs()})
    return {entry.name: value.tolist() for entry, value in zip(session.get_outputs(), outputs)}

folder, new = sys.argv[1:]
rows = list(csv.DictReader(open(new, newline="")))
inputs = {name: numpy.array([row[name] for row in rows], dtype=object) for name in ("colour", "zone")}
inputs["size"] = numpy.array([float(row["size"] or "nan") for row in rows])
inputs["share"] = numpy.array([float(row["share"].rstrip("%") or "nan") for row in rows])
days = numpy.array([row["day"] or "NaT" for row in rows], dtype="datetime64[D]")
inputs["day"] = numpy.where(numpy.isnat(days), numpy.nan, days.astype("int64"))
found = {kind: answers(f"{folder}/{kind}.onnx", inputs) for kind in ("classification", "regression", "multilabel")}
found["images"] = answers(f"{folder}/images.onnx", {"pixels": numpy.load(f"{folder}/pixels.npy")})
print(json.dumps(found))
"""


@pytest.mark.slow
def test_onnxruntime_predicts_the_same_without_torch(
    runs: dict[str, Run], pictures: Run, new: Path, tmp_path: Path
) -> None:
    images = sorted(Path(pictures.config.data.source).rglob("*.png"))
    np.save(tmp_path / "pixels.npy", np.stack([np.array(Image.open(path)).transpose(2, 0, 1) for path in images]))
    for name, run in {**runs, "images": pictures}.items():
        assert main(["export", str(run.path), "--onnx", str(tmp_path / f"{name}.onnx")]) == 0
    (tmp_path / "script.py").write_text(WITHOUT_TORCH)
    command = python_command(str(tmp_path / "script.py"), str(tmp_path), str(new))
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    for kind in ("classification", "multilabel"):
        printed = predicted(runs[kind], new)
        for chances in (column(printed, "probability_"), runs[kind].predict_proba(new)):
            np.testing.assert_allclose(found[kind]["probabilities"], chances, atol=1e-5)
    assert found["classification"]["label"] == runs["classification"].predict(new).tolist()
    assert found["multilabel"]["labels"] == runs["multilabel"].predict(new).tolist()
    deviation = np.array(runs["regression"].task.deviation)
    for values in (column(predicted(runs["regression"], new), "predicted_"), runs["regression"].predict(new)):
        np.testing.assert_allclose(found["regression"]["values"] / deviation, values / deviation, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found["images"]["probabilities"], pictures.predict_proba(images), atol=1e-5)
    assert found["images"]["label"] == pictures.predict(images).tolist()
