"""Options that `verydeep reproduce` rejects."""

import pytest

from verydeep.cli import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["fig9"], "unknown table or figure"), (["fig1", "--only", "highway-51"], "did you mean 'highway-50'?"),
     (["fig1", "--jobs", "-1"], "--jobs must be 0 or more"),
     (["table1", "--heartbeat", "0"], "--heartbeat must be at least 1"),
     (["tabel1"], "did you mean 'table1'?"), (["table2", "--only", "highway-d"], "unknown row of table2"),
     (["table1", "--strict"], "--strict does not apply to table1"),
     (["fig1", "--seeds", "2"], "--seeds does not apply to fig1"),
     (["table1", "--seeds", "-1"], "--seeds takes"), (["table1", "--seeds", "99999999999"], "at most 1000"),
     (["table1", "--epochs", "0"], "--epochs must be at least 1"),
     (["all", "--only", "highway-a"], "name it instead of all"), (["table1", "--minutes", "-1"], "--minutes must be")],
)  # fmt: skip
def test_invalid_options_are_one_line_errors(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
