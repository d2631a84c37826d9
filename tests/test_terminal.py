"""What is printed cannot control a terminal, whoever chose the names in it."""

import io
import json
from pathlib import Path

import pytest

from verydeep.cli import main
from verydeep.terminal import echo, without_controls

EVIL = "a\x1b]0;title\x07\u202eb\x9bc"


def test_text_is_printed_without_control_characters() -> None:
    file = io.StringIO()
    echo(f"tab\tbold \x1b[1mtext\x1b[0m {EVIL}", "next line", file=file)
    assert file.getvalue() == (
        "tab\tbold \x1b[1mtext\x1b[0m a\\x1b]0;title\\x07\\u202eb\\u009bc\n"  # bold is ours
        "next line\n"
    )


def test_json_remains_json() -> None:
    assert json.loads(without_controls(json.dumps({"name": EVIL}, ensure_ascii=False))) == {"name": EVIL}


def test_a_long_argument_is_not_repeated_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "digits", "--depth", "9" * 1_000_000]) == 2
    assert len(capsys.readouterr().err) < 5000
    assert main(["x" * 1_000_000]) == 2
    assert len(capsys.readouterr().err) < 5000


def test_a_command_that_prints_a_path_does_not_obey_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a\x1b]0;title\x07"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    main(["runs", folder.name])
    captured = capsys.readouterr()
    assert "\x1b]" not in captured.out + captured.err
    assert "\\x1b]0;title" in captured.out + captured.err
