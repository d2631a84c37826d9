"""`how_deep` and `verydeep depth` from the data to the answer, interrupted and continued."""

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from _postgres import Server
from PIL import Image

from verydeep.cli import main
from verydeep.data import load_dataset
from verydeep.depth import DepthAnswer, DepthProgress, how_deep
from verydeep.errors import UserError
from verydeep.processes import python_command
from verydeep.training import Run, TrainConfig

EPOCHS = 900


def corners() -> tuple[np.ndarray, np.ndarray]:
    """Exclusive or of two signs: a linear model is as good as a blind guess, and one hidden layer learns it."""
    random = np.random.default_rng(0)
    x = random.normal(size=(120, 2))
    return x, (x[:, 0] * x[:, 1] > 0).astype(int)


def settled(path: Path) -> dict[str, Any]:
    """An answer without what differs from one machine and folder to the next."""
    answer = json.loads((path / "depth.json").read_text())
    for place in (answer, *answer["points"], *answer["others"]):
        place.pop("seconds")
    answer["plan"].pop("jobs")
    return {name: value for name, value in answer.items() if name not in ("folder", "source")}


class Recorded(DepthProgress):
    def __init__(self) -> None:
        self.phases: list[str] = []

    def phase(self, text: str) -> None:
        self.phases += [] if text in self.phases else [text]


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DepthAnswer, list[str]]:
    folder, progress = tmp_path_factory.mktemp("depth") / "answer", Recorded()
    answer = how_deep(corners(), folder=folder, most=2, total_epochs=EPOCHS, progress=progress)
    return folder, answer, progress.phases


@pytest.mark.slow
def test_the_answer_is_written_with_its_page_and_a_network_that_predicts(
    answered: tuple[Path, DepthAnswer, list[str]],
) -> None:
    folder, answer, _ = answered
    assert DepthAnswer.load(folder) == answer
    assert answer.sentence in json.loads((folder / "depth.json").read_text())["sentence"]
    assert "<html" in (folder / "depth.html").read_text()
    assert [(point.kind, point.depth) for point in answer.points] == [
        ("highway", 0),
        ("highway", 1),
        ("highway", 2),
        ("plain", 2),
    ]
    assert answer.network is not None
    run = Run.load(folder / answer.network.path)
    assert len(run.predict(corners()[0][:7])) == 7
    assert (run.config.model.depth, run.model.config.depth) == (answer.depth, answer.depth)


@pytest.mark.slow
def test_what_a_linear_model_cannot_learn_needs_a_hidden_layer(answered: tuple[Path, DepthAnswer, list[str]]) -> None:
    _, answer, _ = answered
    assert answer.depth in (1, 2)
    assert answer.interval is not None
    assert answer.interval[0] >= 1
    linear = answer.point(0)
    assert linear is not None
    assert not linear.is_enough
    assert linear.score < 0.75


@pytest.mark.slow
def test_no_shallower_network_that_was_trained_is_as_good(answered: tuple[Path, DepthAnswer, list[str]]) -> None:
    _, answer, _ = answered
    assert answer.depth is not None
    assert [point.depth for point in answer.points if point.depth < answer.depth and point.is_enough] == []
    best = min(answer.points, key=lambda point: point.loss)
    assert (best.depth, best.kind) == (answer.best_depth, answer.best_kind)


@pytest.mark.slow
def test_the_test_data_is_used_once_and_by_the_recommended_network_only(
    answered: tuple[Path, DepthAnswer, list[str]],
) -> None:
    folder, answer, _ = answered
    for metrics in folder.glob("*/*/seed-*/metrics.jsonl"):
        assert "test_" not in metrics.read_text()
    assert answer.network is not None
    assert answer.network.test_samples == answer.rows[2] == 24


@pytest.mark.slow
def test_a_network_of_the_right_depth_learns_from_the_held_out_samples_in_the_end(
    answered: tuple[Path, DepthAnswer, list[str]],
) -> None:
    folder, answer, _ = answered
    network = answer.network
    assert network is not None
    assert network.made == "trained"
    run = Run.load(folder / network.path)
    assert run.config.data.folds is None
    whole = load_dataset(run.config.data)
    part = load_dataset(replace(run.config.data, folds=5))
    assert whole.held_out is None
    assert network.rows == len(whole.train) > answer.rows[0] == len(part.train)
    assert {other.all_rows for other in answer.others} == {network.rows}
    assert (whole.test.y == part.test.y).all()


@pytest.mark.slow
def test_every_seed_holds_out_another_part(answered: tuple[Path, DepthAnswer, list[str]]) -> None:
    folder, answer, _ = answered
    folds = {Run.load(file.parent).config.data.fold for file in folder.glob("*/*/seed-*/config.json")}
    assert len(folds) == answer.plan.seeds == 3


@pytest.mark.slow
def test_people_are_told_what_goes_on(answered: tuple[Path, DepthAnswer, list[str]]) -> None:
    phases = answered[2]
    assert phases[0] == "reading the data"
    assert "finding settings for each depth" in phases
    assert phases[-1] == "fitting other models for comparison"


@pytest.mark.slow
def test_an_answer_is_returned_at_once_and_only_for_the_same_question(
    answered: tuple[Path, DepthAnswer, list[str]],
) -> None:
    folder, answer, _ = answered
    assert how_deep(corners(), folder=folder, most=2, total_epochs=EPOCHS, progress=False) == answer
    with pytest.raises(UserError, match="started with most 2, not 3"):
        how_deep(corners(), folder=folder, most=3, total_epochs=EPOCHS, progress=False)
    balanced = TrainConfig(class_weight=("balanced",))
    with pytest.raises(UserError, match="started with class weight none, not \\['balanced'\\]"):
        how_deep(corners(), folder=folder, most=2, total_epochs=EPOCHS, progress=False, settings=balanced)


@pytest.mark.slow
def test_other_data_does_not_get_the_answer_of_the_folder(answered: tuple[Path, DepthAnswer, list[str]]) -> None:
    folder = answered[0]
    before = (folder / "data" / "data.npz").read_bytes()
    x, y = corners()
    with pytest.raises(UserError, match="was started with other data; choose another folder"):
        how_deep((x, 1 - y), folder=folder, most=2, total_epochs=EPOCHS, progress=False)
    assert (folder / "data" / "data.npz").read_bytes() == before


@pytest.mark.slow
def test_a_page_that_is_missing_is_written_again(answered: tuple[Path, DepthAnswer, list[str]]) -> None:
    page = answered[0] / "depth.html"
    page.unlink()
    how_deep(corners(), folder=answered[0], most=2, total_epochs=EPOCHS, progress=False)
    assert "How deep must a network be" in page.read_text()


@pytest.mark.slow
def test_killed_at_any_time_it_continues_to_the_same_answer(
    answered: tuple[Path, DepthAnswer, list[str]], tmp_path: Path
) -> None:
    x, y = corners()
    np.savez(tmp_path / "data.npz", x=x, y=y)
    budget = ["--most", "2", "--total-epochs", str(EPOCHS), "--jobs", "1"]
    command = python_command("-m", "verydeep", "depth", "data.npz", "--folder", "killed", *budget)
    for ended in (3, 14):  # during the searches, and while seeds are trained
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        while process.poll() is None and _ended(tmp_path / "killed") < ended:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    finished = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert answered[1].sentence in finished.stdout
    assert settled(tmp_path / "killed") == settled(answered[0])


def _ended(folder: Path) -> int:
    return len(list(folder.glob("**/summary.json")))


def test_bad_requests_take_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x, y = corners()
    np.savez("corners.npz", x=x, y=y)
    np.savez("one.npz", x=x, y=np.zeros(len(x), int))
    np.savez("few.npz", x=x[:30], y=y[:30])
    np.savez("tiny.npz", x=x[:5], y=y[:5])
    Path("table.csv").write_text("a,b\n1,2\n")
    Path("comma.csv").write_text("a,b\n" + "\n".join(f'"{row},5",{row % 2}' for row in range(60)) + "\n")
    for size, name in enumerate(("u", "v"), start=8):
        Path("sizes", name).mkdir(parents=True)
        for number in range(20):
            Image.new("L", (size, size), 9 * number).save(f"sizes/{name}/{number}.png")
    cases = {
        ("corners.npz", "--loss", "huber"): "loss",
        ("tiny.npz",): "at least 30 are needed",
        ("corners.npz", "--total-epochs", "5"): "--total-epochs = 5 is too little for three seeds at three depths",
        ("corners.npz", "--minutes", "0"): "minutes must be more than 0",
        ("corners.npz", "--minutes", "1", "--total-epochs", "5"): "give --minutes or --total-epochs, not both",
        ("corners.npz", "--most", "1"): "most must be from 2 to 1000",
        ("corners.npz", "--network", "conv"): "a convolutional network needs images",
        ("corners.npz", "--folds", "3"): "unknown option --folds",
        ("corners.npz", "--validation", "0"): "--validation 0: validation data stops trainings and chooses settings",
        ("sizes",): "add --image-size to resize them",
        ("table.csv",): "Add --target with one of 'a', 'b'",
        ("comma.csv", "--target", "b"): "add --decimal ','",
        ("one.npz",): "class",
        ("few.npz",): "at least 30 are needed",
        ("none.csv",): "no such file",
        ("highway50-mnist",): "is a configuration",
    }
    for arguments, message in cases.items():
        assert main(["depth", *arguments, "--folder", "out", "--quiet"]) == 2
        printed = capsys.readouterr().err
        assert message in printed
        assert printed.count("\n") <= 2
        assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"network": "rnn"}, "unknown network 'rnn'"),
        ({"minutes": "1"}, "minutes must be a number, got '1'"),
        ({"seed": "a"}, "seed must be a whole number, got 'a'"),
        ({"total_epochs": 400.5}, "total_epochs must be a whole number, got 400.5"),
        ({"most": 2.5}, "most must be a whole number, got 2.5"),
        ({"settings": {"loss": "huber"}}, "settings must be a TrainConfig"),
    ],
)
def test_arguments_of_the_wrong_type_take_one_line(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        how_deep(corners(), folder=tmp_path / "out", progress=False, **arguments)


def test_columns_with_the_same_name_take_one_line(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.zeros((50, 3)), columns=["a", "a", "y"])
    with pytest.raises(UserError, match="columns with the same name: 'a'"):
        how_deep(frame, "y", folder=tmp_path / "out", progress=False)


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(UserError, match="is not a study"):
        how_deep(corners(), folder=tmp_path, most=2, total_epochs=EPOCHS, progress=False)
    assert (tmp_path / "letters.txt").read_text() == "mine"


def test_the_answer_is_a_sentence_for_every_outcome(answer: DepthAnswer) -> None:
    assert answer.sentence.startswith("2 layers are enough (95 % interval 1 to 4): accuracy 97.20% on test data")
    assert "deeper networks gain nothing measurable" in answer.sentence
    assert "gradient boosting has 97.90%" in answer.sentence
    assert replace(answer, depth=0).sentence.startswith("A linear model is enough")
    assert replace(answer, depth=1).sentence.startswith("1 layer is enough")
    assert replace(answer, depth=2, kind="plain").sentence.startswith("2 layers of a plain network are enough")
    assert replace(answer, unit="layers per stage").sentence.startswith("2 layers per stage are enough")
    assert "interval" not in replace(answer, interval=None).sentence
    assert replace(answer, depth=None).sentence.startswith("No network learned anything")
    assert not replace(answer, depth=None).learned


def test_disagreement_of_lesions_and_training_is_explained(answer: DepthAnswer) -> None:
    assert answer.used is not None
    assert replace(answer, used=replace(answer.used, used=3, interval=(2, 5))).disagreement == ""
    more = replace(answer, used=replace(answer.used, used=9, interval=(8, 11))).disagreement
    assert more.startswith("The trained network of 8 layers uses 9 of them, but a fresh network of 2 layers is as good")
    assert more.endswith("the deep one spreads its work over more layers than it needs.")
    linear = replace(answer, depth=0, interval=(0, 0), used=replace(answer.used, used=9, interval=(8, 11)))
    assert "but a linear model is as good" in linear.disagreement
    fewer = replace(answer, depth=4, interval=(4, 4), used=replace(answer.used, used=1, interval=(1, 1))).disagreement
    assert "uses only 1 of them, but a fresh network needs 4 layers" in fewer
    input_layer = replace(answer, depth=0, interval=(0, 0), used=replace(answer.used, used=1, interval=(1, 1)))
    assert input_layer.disagreement == ""  # which cannot be closed
    same = replace(answer, depth=8, interval=(8, 8), used=replace(answer.used, used=1, interval=(1, 1)))
    assert same.disagreement == ""  # the deep network had no more layers to choose from


def test_an_interval_with_one_end_is_refused(answer: DepthAnswer) -> None:
    with pytest.raises(UserError, match="an interval has two ends"):
        DepthAnswer.from_dict(answer.to_dict() | {"interval": [1]}, "depth.json")


@pytest.mark.slow
def test_workers_on_another_machine_help_to_the_same_answer(
    answered: tuple[Path, DepthAnswer, list[str]], tmp_path: Path, server: Server
) -> None:
    x, y = corners()
    np.savez(tmp_path / "data.npz", x=x, y=y)
    shared = ["--storage", server.url, "--artifacts", str(tmp_path / "weights")]
    budget = ["--most", "2", "--total-epochs", str(EPOCHS), "--jobs", "0"]  # this machine trains nothing itself
    folder = tmp_path / "here" / "asked"
    asking = subprocess.Popen(
        python_command("-m", "verydeep", "depth", "data.npz", "--folder", str(folder), *budget, *shared), cwd=tmp_path
    )
    while asking.poll() is None and not (folder / "study.json").exists():
        time.sleep(0.1)
    helping = python_command("-m", "verydeep", "worker", str(tmp_path / "there" / "asked"), *shared)
    helped = subprocess.run(helping, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert asking.wait() == 0
    assert "waiting for more trainings" in helped.stdout + helped.stderr
    assert settled(folder) == settled(answered[0])
