"""Passwords are hidden wherever a command line or an address may have them, and nothing else is."""

from pathlib import Path

import pytest

from verydeep.cli import main
from verydeep.redact import redact


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:SECRET@server/db", "postgresql://me@server/db"),
        ("PostgreSQL+psycopg://me:SECRET@server:5432/db", "PostgreSQL+psycopg://me@server:5432/db"),
        ("me:SECRET@server/db", "me@server/db"),
        ("--storage=postgresql://me:SECRET@server/db", "--storage=postgresql://me@server/db"),
        ("--storage=me:SECRET@server/db", "--storage=me@server/db"),
        ("postgresql://me:%53ECRET%40%2F@server/db", "postgresql://me@server/db"),
        ("postgresql://me:SE@CR@ET@server/db", "postgresql://me@server/db"),
        ("postgresql://me:SE/CR:ET?x=1@server/db", "postgresql://me@server/db"),
        ("me:SE://CRET@server/db", "me@server/db"),
        ("postgresql://:SECRET@[::1]:5432/db", "postgresql://@[::1]:5432/db"),
        ("postgresql://a:SECRET@one/db,postgresql://b:SECRET@two/db", "postgresql://a@two/db"),
        ("postgresql://me:SECRET@server/db?host=/run", "postgresql://me@server/db?host=/run"),
        ("postgresql://me:SE\nCRET@server/db", "postgresql://me@server/db"),
    ],
)
def test_a_password_before_the_host_disappears(address: str, shown: str) -> None:
    assert redact(address) == shown


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me@server/db?password=SECRET", "postgresql://me@server/db"),
        ("postgresql:///db?PassWord=SECRET&host=/run&sslpassword=SECRET", "postgresql:///db?host=/run"),
        ("postgresql:///db?host=/run&passfile=SECRET&user=me", "postgresql:///db?host=/run&user=me"),
        ("postgresql:///db?p%61ssword=SECRET&x=1", "postgresql:///db?x=1"),
        ("postgresql:///db?password=SEC%26RET?x=SECRET/SECRET", "postgresql:///db"),
        ("postgresql:///db?host=/run?password=SECRET", "postgresql:///db?host=/run?password=***"),
        ("postgresql://me:SECRET@server/db?password=SECRET:SECRET@SECRET", "postgresql://me@"),
        ("postgresql://server:5432/db?password=SECRET@SECRET&x=1", "postgresql://server@&x=1"),
        ("me@server/db?PASSWORD=SECRET", "me@server/db"),
    ],
)
def test_a_password_in_the_query_disappears(address: str, shown: str) -> None:
    assert redact(address) == shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--storage", "postgresql://me:SECRET@server/db"], "--storage postgresql://me@server/db"),
        (["PASSWORD=SECRET SECRET", "x"], "PASSWORD=*** x"),
        (["PGPASSWORD=SECRET", "pgPassFile=SECRET"], "PGPASSWORD=*** pgPassFile=***"),
        (["host=server password = 'SECRET \\' SECRET' user=me"], "host=server password =***"),
        (["--db-password", "SECRET", "--quiet"], "--db-password *** --quiet"),
        (["--password", "--api-key", "SECRET"], "--password *** ***"),
        (["--Password=me:SECRET@SECRET"], "--Password=***"),
        (["--db.pass=SECRET", "DB_PASS=SECRET"], "--db.pass=*** DB_PASS=***"),
        (['{"password": "SECRET"}'], '{"password":***'),
    ],
)
def test_a_command_line_is_shown_without_secrets(words: list[str], shown: str) -> None:
    assert redact("verydeep", *words) == f"verydeep {shown}"


@pytest.mark.parametrize(
    "word",
    [
        "postgresql://me@server:5432/db?host=/run&options=-c%20x",
        "postgresql://me@[::1]:5432/db",
        "postgresql://me@db-token:5432/password",
        "postgresql:///db?",
        "--max-tokens=4",
        "--optim.lr=0.1",
        "me@example.org",
        "runs/10:30/what?",
        "",
    ],
)
def test_what_is_no_secret_stays(word: str) -> None:
    assert redact("verydeep", word) == f"verydeep {word}"


@pytest.mark.parametrize(
    "arguments",
    [[], ["models"], ["eval"], ["train"], ["search"], ["data", "get"], ["train", "--device"], ["train", "--model.name"],
     ["train", "--resume"], ["train", "--data.source"],
     ["train", "--data.source", "digits", "--epochs", "1", "--folder"]],
    ids=" ".join,
)  # fmt: skip
def test_a_misplaced_address_shows_its_password_nowhere(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, "postgresql://me:s3cr3tPW@server/db"]) == 2
    assert "s3cr3tPW" not in "".join(capsys.readouterr())
    assert list(tmp_path.iterdir()) == []
