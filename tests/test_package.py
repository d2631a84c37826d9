"""What the wheel holds besides the code: `make package` builds and lists it."""

import re
import tomllib
from pathlib import Path

import pytest

from verydeep.errors import install_command

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_wheel_gets_every_file_that_commands_read() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"configs": "verydeep/_configs", "pretrained": "verydeep/_pretrained"}
    assert (ROOT / "configs" / "schema.json").exists()
    assert wheel["packages"] == ["src/verydeep"]  # with its templates, styles and scripts


def test_the_source_archive_gets_what_its_pages_and_tests_read() -> None:
    included = set(PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    links = {link.split("/")[0] for page in pages for link in re.findall(r"\]\(([\w./-]+)", page.read_text())}
    linked = {name for name in links if (ROOT / name).exists()}
    assert linked | {"requirements-release.txt", "constraints.txt", ".ci", "tests"} <= included
    assert all((ROOT / name).exists() for name in included)


def test_versions_agree() -> None:
    version = PROJECT["project"]["version"]
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), flags=re.M)
    assert f"verydeep:{version}" in (ROOT / "docs" / "clusters.md").read_text()


def test_every_dependency_has_a_lowest_version_and_a_pin() -> None:
    pins = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), flags=re.M)
    known = {re.sub(r"[-_.]+", "-", name).lower() for name in pins}
    for line in [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["dev"]]:
        name = re.match(r"[\w-]+", line)
        assert name is not None
        assert ">=" in line
        assert name[0].lower() in known, f"{line}: not in constraints.txt"


def test_a_release_has_the_digest_of_all_it_needs_but_torch() -> None:
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text().lower(), flags=re.M))
    lines = [line for line in (ROOT / "requirements-release.txt").read_text().splitlines() if line[0] != "#"]
    locked = dict(line.split(" --hash=sha256:")[0].split("==") for line in lines)
    assert all(re.fullmatch(r"[\w.-]+==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    assert {name: pins[name] for name in locked} == locked
    needed = {re.split(r"[^\w-]", line)[0].lower() for line in PROJECT["project"]["dependencies"]}
    assert needed - set(locked) == {"torch"}
    assert PROJECT["build-system"]["requires"] == [f"hatchling=={locked['hatchling']}"]


def test_hints_to_extras_keep_the_versions_that_are_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert install_command("onnx") == f"pip install -c {ROOT / 'constraints.txt'} -e '{ROOT}[onnx]'"
    installed = tmp_path / "lib" / "site-packages" / "verydeep" / "errors.py"
    monkeypatch.setattr("verydeep.errors.__file__", str(installed))  # a package, without a clone around it
    assert install_command("onnx") == "pip install 'verydeep[onnx]'"
