"""The demo: which data it takes, what it prints, and that it continues."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import verydeep.data
from verydeep.cli import main
from verydeep.cli.commands._demo import _choose_data, _compare_deepest
from verydeep.depth import DepthAnswer, DepthPoint
from verydeep.errors import UserError


def test_without_mnist_the_demo_takes_the_digits_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(name: str, root: Path | None) -> None:
        raise UserError(f"{name} could not be got:\n  - here: nothing\n  - web: refused\n    twice\nWhat to do: wait")

    monkeypatch.setattr(verydeep.data, "load_dataset", nowhere)
    assert _choose_data(None) == "digits"
    assert "MNIST is not available: mnist could not be got: here: nothing; web: refused\n" in capsys.readouterr().out


def test_other_data_is_sent_to_the_command_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--data", "wine.csv"]) == 2
    assert (
        capsys.readouterr().err
        == "verydeep: the demo is for mnist or digits; for other data: verydeep depth wine.csv\n"
    )


def test_the_deepest_networks_are_compared_in_a_sentence(answer: DepthAnswer) -> None:
    assert _compare_deepest(answer) is None
    both = replace(answer, points=(*answer.points, DepthPoint("plain", 8, 2.3, 0.1)))
    expected = (
        "With 8 layers, highway networks reach accuracy 97.00% on held-out data, and plain networks accuracy 10.00%."
    )
    assert _compare_deepest(both) == expected


def test_the_demo_ends_with_an_answer_a_picture_and_the_next_command(
    answer: DepthAnswer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def made_up(data: str, *, folder: Path, **options: Any) -> DepthAnswer:
        asked.append({"data": data, "folder": folder} | options)
        answer.save(folder / "depth.json")
        return answer

    monkeypatch.setattr("verydeep.depth.how_deep", made_up)
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):  # a demo that has an answer is not repeated
        assert main(["demo", "--data", "digits"]) == 0
        printed = capsys.readouterr().out
        assert answer.sentence in printed
        assert f"verydeep report runs/demo/{number}/network" in printed
        assert Path(f"runs/demo/{number}/depth.png").stat().st_size > 10_000
    assert [each["folder"] for each in asked] == [Path("runs/demo/1"), Path("runs/demo/2")]
    assert asked[0]["minutes"] == 2.5
