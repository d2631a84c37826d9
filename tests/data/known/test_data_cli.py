import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from PIL import Image

from verydeep.cli import main
from verydeep.data import KNOWN_DATASETS

from ._small_datasets import Small, small_cifar, small_idx


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> tuple[Small, Small]:
    smalls = small_idx(), small_cifar()
    for name in list(KNOWN_DATASETS):
        monkeypatch.delitem(KNOWN_DATASETS, name)
    for small in smalls:
        monkeypatch.setitem(KNOWN_DATASETS, small.known.name, small.known)
    return smalls


def lay_out(small: Small, root: Path) -> Path:
    folder = root / small.known.folder
    folder.mkdir(parents=True)
    for name, data in small.files.items():
        (folder / name).write_bytes(data)
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_list_shows_where_each_dataset_is(
    known: tuple[Small, Small], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = lay_out(known[0], tmp_path)
    code, out, _ = run(capsys, "data", "list", "--root", str(tmp_path))
    assert code == 0
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines()}
    assert lines["mnist"] == f"3 1 x 5 x 5 0 {folder}"
    assert lines["cifar10"] == "3 3 x 4 x 4 0 not here: verydeep data get cifar10"
    assert lines["digits"] == "10 1 x 8 x 8 0 part of scikit-learn"


def test_list_reports_a_file_with_other_content(
    known: tuple[Small, Small], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = lay_out(known[1], tmp_path)
    (folder / "test_batch.bin").write_bytes(b"wrong")
    _, out, _ = run(capsys, "data", "list", "--root", str(tmp_path))
    assert f"wrong file: {folder / 'test_batch.bin'}: 5 bytes, the official file has 294" in out


def test_get_finds_a_dataset_on_disk(
    known: tuple[Small, Small], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = lay_out(known[1], tmp_path)
    code, out, _ = run(capsys, "data", "get", "cifar10", "--root", str(tmp_path))
    assert (code, out) == (0, f"cifar10: 3 files, 0 MB, digests verified, in {folder}\n")


def test_get_copies_to_the_given_root(
    known: tuple[Small, Small], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(known[1], tmp_path / "shared")
    monkeypatch.setenv("VERYDEEP_DATA", str(tmp_path / "shared"))
    code, _, _ = run(capsys, "data", "get", "cifar10", "--root", str(tmp_path / "mine"))
    copies = {path.name: path.read_bytes() for path in (tmp_path / "mine" / known[1].known.folder).iterdir()}
    assert (code, copies) == (0, known[1].files)


def test_get_that_fails_exits_with_two_and_all_reasons(
    known: tuple[Small, Small], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "data", "get", "mnist", "--root", str(tmp_path))
    assert (code, out) == (2, "")
    assert err.startswith("verydeep: mnist is not on this machine and could not be fetched:\n")
    assert "What to do: " in err


def test_check_prints_digests_and_counts(
    known: tuple[Small, Small], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(known[0], tmp_path)
    code, out, _ = run(capsys, "data", "check", "mnist", "--root", str(tmp_path))
    assert code == 0
    assert all(file.sha256 in out for file in known[0].known.files)
    assert [line.split() for line in out.splitlines()[4:]] == [
        ["class", "train", "test"], ["a", "4", "2"], ["b", "4", "2"], ["c", "4", "2"], ["all", "12", "6"],
    ]  # fmt: skip


def test_check_never_fetches_and_reports_wrong_files(
    known: tuple[Small, Small], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = lay_out(known[0], tmp_path)
    path = folder / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-1])
    code, _, err = run(capsys, "data", "check", "mnist", "--root", str(tmp_path))
    assert code == 2
    assert f"{path}: 315 bytes, the official file has 316" in err
    assert not (tmp_path / ".mnist.lock").exists()


@pytest.mark.parametrize("name", ["cifar10", "digits"])
def test_show_writes_a_contact_sheet(
    known: tuple[Small, Small], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    lay_out(known[1], tmp_path)
    sheet = tmp_path / "sheet.png"
    code, out, _ = run(capsys, "data", "show", name, "--out", str(sheet), "--root", str(tmp_path))
    assert (code, out) == (0, f"{sheet}\n")
    with Image.open(sheet) as picture:
        assert picture.width > 200


@pytest.mark.parametrize("command", ["get", "check"])
def test_digits_are_always_available(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, out, _ = run(capsys, "data", command, "digits")
    assert code == 0
    assert "digits: part of scikit-learn" in out or "1438" in out


def test_an_unknown_dataset_is_a_one_line_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "data", "get", "digit") == (2, "", "verydeep: unknown dataset 'digit'; did you mean 'digits'?\n")


@pytest.mark.parametrize("arguments", [["--help"], ["data", "--help"], ["data", "get", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom verydeep.cli import main\n"
        f"try: main({arguments!r})\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'numpy', 'sklearn', 'PIL'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_a_path_that_is_not_utf8_can_still_be_printed(known: tuple[Small, Small], tmp_path: Path) -> None:
    program = "import sys; from verydeep.cli import main; sys.exit(main(sys.argv[1:]))"
    sheet = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png")
    command = [sys.executable, "-c", program, "data", "show", "digits", "--out", sheet]
    environment = {"PATH": "", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert done.stdout.endswith(b"/\xff.png\n")


WORDS = st.sampled_from(
    ["data", "get", "check", "show", "list", "mnist", "cifar10", "--root", "--out", "--samples", "0"]
)
FEW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=150, deadline=None, suppress_health_check=FEW)
@given(words=st.lists(WORDS | st.text(st.characters(exclude_characters="/~"), max_size=8), max_size=6))
@example(["show", "mnist", "--out", "\0"])
@example(["get", "mnist", "--root", "\0"])
@example(["get", "mnist", "--root", "\udcff"])
def test_any_command_line_ends_with_an_exit_code_and_no_traceback(
    known: tuple[Small, Small], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    (tmp_path / "a/b").mkdir(parents=True, exist_ok=True)  # so that a root of .. is still ours
    monkeypatch.chdir(tmp_path / "a/b")
    try:
        code: object = main(["data", *words])
    except SystemExit as end:
        code = end.code
    assert code in (0, 2)
