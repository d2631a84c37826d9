import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TextIO

import pytest

from verydeep.bench import bench_page
from verydeep.cli import COMMANDS, main
from verydeep.cli._help import help_text, meaning
from verydeep.cli._options import Setting, settings_of
from verydeep.cli.commands._bench import _show
from verydeep.cli.commands._completion import words_after


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in ("data", "models", "train"))


def _python(program: str, *arguments: str, **environment: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environment).stdout


def test_listings_and_every_help_load_no_torch(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    lines = [["models"], ["models", "--json"], ["runs", str(tmp_path / "runs")], ["data", "list"], ["help"], ["-v"]]
    lines += [[*name.split(), "--help"] for name in _all_options()]
    lines += [["completion", "words", "train", "--model"]]
    program = f"""
import contextlib, io, sys
from verydeep.cli import main
for line in {lines!r}:
    with contextlib.redirect_stdout(io.StringIO()):
        try: main(line)
        except SystemExit: pass
    found = [name for name in ("torch", "optuna", "matplotlib", "sklearn") if name in sys.modules]
    assert not found, (line, found)
"""
    _python(program)


def _all_options() -> dict[str, type]:
    modules = [import_module(f"verydeep.cli.commands._{name}") for name in COMMANDS]
    return {name: options for module in modules for name, options in module.OPTIONS.items()}


_NOT_SAID = (
    "None", "unless given", "{", "[STR", "[INT", "INT", "FLOAT", "STR ", "`", "default: False", "default: True",
    "so many", "what came", "mend", "products", "digests right", "at all", "ended already",
)  # fmt: skip


def test_every_help_says_in_plain_words_what_each_option_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for name, options in _all_options().items():
        settings = settings_of(options)
        shown = help_text(options, name, settings)
        assert [words for words in _NOT_SAID if words in shown] == [], name
        assert max(map(len, shown.splitlines())) <= 60 or name == "reproduce", name
        for setting in settings:
            text = meaning(setting)
            assert text[:1].isupper() or text[:1].isdigit(), (name, setting.name, text)
            assert text.rstrip(")").endswith((".", setting_default(setting))), (name, setting.name, text)


def setting_default(setting: Setting) -> str:
    default = setting.default
    if default is True:
        return "on"
    return f"{default:g}" if isinstance(default, float) else str(default)


def test_the_help_of_train_shows_short_forms_and_how_to_write_them_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["help", "train"])
    shown = capsys.readouterr().out
    assert "\n  --lr X " in shown
    assert "--lr is short for --optim.lr" in shown
    assert "\n  --[no-]nesterov" in shown


@pytest.mark.parametrize("arguments", [["-v"], ["-V"], ["--version"]])
def test_the_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert re.fullmatch(r"verydeep \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_help_is_a_command_and_names_completion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    shown = capsys.readouterr().out
    assert "completion" in shown
    assert max(map(len, shown.splitlines())) <= 80
    with pytest.raises(SystemExit) as end:
        main(["help", "search", "show"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("usage: verydeep search show STUDY")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ([], {"train", "compare", "help"}),
        (["train"], {"--lr", "--optim.lr", "mnist", "--resume", "highway50-mnist", "--no-nesterov"}),
        (["train", "mnist", "--optim"], {"sgd", "adam", "muon"}),
        (["train", "--model"], {"highway-mlp"}),
        (["data"], {"list", "get"}),
        (["data", "get"], {"cifar10"}),
        (["search"], {"show", "--trials"}),
        (["search", "best"], {"--out", "-o"}),
        (["completion"], {"bash"}),
    ],
)
def test_what_can_follow_is_completed(line: list[str], words: set[str]) -> None:
    assert words <= set(words_after(line))


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    program = tmp_path / "verydeep"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m verydeep "$@"\n')
    program.chmod(0o755)
    script = f"""PATH={tmp_path}:$PATH
eval "$(verydeep completion bash)"
COMP_WORDS=(verydeep train --gate-b); COMP_CWORD=2; _verydeep; echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "--gate-bias\n"


@pytest.mark.parametrize("width", [60, 80])
def test_models_fit_narrow_terminals(width: int) -> None:
    program = "import sys; from verydeep.cli import main; main(['models'])"
    shown = _python(program, COLUMNS=str(width))
    assert max(map(len, shown.splitlines())) <= width
    assert "highway-19-nin classes=100" in shown
    assert "…" not in shown
    assert ("MACs" in shown.splitlines()[0]) == (width == 80)


def test_models_as_json_are_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"]: row["parameters"] for row in rows}["highway-mnist-16"] == 38_986


@pytest.mark.slow
def test_one_model_is_shown_with_what_was_inferred(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "highway-c"]) == 0
    shown = capsys.readouterr().out
    assert "inferred:" in shown
    assert "HighwayConv2d" in shown


_AMBIGUOUS = "--name is not unique: give --model.name, --optim.name or --schedule.name (see verydeep train --help)"
_TWO_VALUES = "--device takes one value, but 'b' follows 'a'; a value with spaces needs quotes: --device 'a b'"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["modles"], "unknown command 'modles'; did you mean 'models'?"),
        (["models", "higway-a"], "unknown model 'higway-a'; did you mean 'highway-a'?"),
        (["models", "--jsn"], "unknown option --jsn; did you mean --json? (see verydeep models --help)"),
        (["models", "a", "b"], "unexpected 'b' (see verydeep models --help)"),
        (["train", "--epochs", "x"], "--epochs must be a whole number, not 'x' (see verydeep train --help)"),
        (["train", "--epochs=1.5"], "--epochs must be a whole number, not '1.5' (see verydeep train --help)"),
        (["train", "--optim.lr", "hint"], "--optim.lr must be a number, not 'hint' (see verydeep train --help)"),
        (["train", "--average", "2"], "--average is now called --ema-half-life"),
        (["train", "--epochs", "1", "--explosion=9"], "--explosion is now called --divergence-factor"),
        (["search", "show"], "missing: STUDY (see verydeep search show --help)"),
        (["export", "run"], "missing: --onnx FILE (see verydeep export --help)"),
        (["data", "lst"], "unknown command of verydeep data 'lst'; did you mean 'list'?"),
        (["train", "--resume"], "--resume needs a value: --resume RUN (see verydeep train --help)"),
        (["train", "--name", "x"], _AMBIGUOUS),
        (["train", "--lrr", "1"], "unknown option --lrr; did you mean --lr? (see verydeep train --help)"),
        (
            ["train", "--learning-rate", "1"],
            "unknown option --learning-rate; did you mean --lr? (see verydeep train --help)",
        ),
        (
            ["train", "--optimizer", "adam"],
            "unknown option --optimizer; did you mean --optim? (see verydeep train --help)",
        ),
        (["train", "--optim", "adm"], "--optim must be sgd, adam or muon, not 'adm' (see verydeep train --help)"),
        (
            ["train", "--validation", "x"],
            "--validation must be a whole number, a number, paper or auto, not 'x' (see verydeep train --help)",
        ),
        (["train", "--device", "a", "b"], _TWO_VALUES),
        (
            ["eval", "run", "--data.split", "x"],
            "unknown option --data.split; did you mean --split? (see verydeep eval --help)",
        ),
        (["train", "--quiet=1"], "--quiet takes no value (see verydeep train --help)"),
        (["search", "a.toml", "--average", "2"], "--average is now called --ema-half-life"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"verydeep: {words}\n"


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_a_wrong_choice_is_said_in_a_line_whatever_the_terminals_width(
    width: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert main(["reproduce", "table1", "--recipe", "slow"]) == 2
    words = "--recipe must be fast, paper or short, not 'slow'"
    assert capsys.readouterr().err == f"verydeep: {words} (see verydeep reproduce --help)\n"


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", [["models"], ["--help"]])
def test_a_reader_who_has_had_enough_is_no_error(command: list[str], unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)  # before there is anything to read
    with os.fdopen(write, "w") as pipe:
        done = _verydeep(command, pipe, unbuffered)
    assert (done.returncode, done.stderr) == (141, "")  # as if the signal had ended it


def _verydeep(command: list[str], out: TextIO, unbuffered: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "verydeep", *command],
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_said_in_a_line(unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = _verydeep(["models"], full, unbuffered)
    assert done.returncode == 2
    assert done.stderr == "verydeep: [Errno 28] No space left on device\n"


def test_the_bench_prints_a_folder_with_brackets_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    _show({}, "", Path("bench[bold]"), False)
    assert capsys.readouterr().out.endswith("are in bench[bold]\n")


def test_the_bench_page_shows_no_password() -> None:
    facts = dict.fromkeys(("processor", "cores", "system", "python", "torch", "verydeep", "git"), "x")
    environment = facts | {"command": "verydeep bench --storage postgresql://me:SECRET@host/db"}
    page = bench_page({"case": {"date": "2026-01-01T00:00", "environment": environment}})
    assert "verydeep bench" in page
    assert "SECRET" not in page


ROOT = Path(__file__).parents[1]


def test_markdown_is_printed_in_columns_that_fit_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from verydeep.cli import _console

    lines = [
        "So far:",
        "| network | ours | machine |",
        "|---|---|---|",
        f"| highway-a | {'9' * 30} | {'x' * 30} |",
        "",
        "end",
    ]
    _console.print_markdown(lines, ["machine"])
    assert capsys.readouterr().out.splitlines() == lines
    monkeypatch.setattr(_console, "console", _console._Console(width=60, force_terminal=True, color_system=None))
    _console.print_markdown(lines, ["machine"])
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 60
    assert [line.split()[0] for line in printed if line] == ["So", "network", "highway-a", "A", "end"]
    assert "A wider terminal also shows: machine." in printed
