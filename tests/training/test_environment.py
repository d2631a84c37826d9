"""What stands beside a result."""

import pytest

from verydeep.training import environment


@pytest.mark.parametrize(
    ("program", "said"),
    [("/home/me/bin/verydeep", "verydeep"), ("/x/verydeep/__main__.py", "verydeep"), ("/x/batches.py", "batches.py")],
)  # fmt: skip
def test_the_command_tells_nothing_of_the_machines_folders(
    program: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [program, "bench", "--quick"])
    assert environment()["command"] == f"{said} bench --quick"
