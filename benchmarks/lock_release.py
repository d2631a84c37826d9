"""Write requirements-release.txt: the dependencies of a release with the digests of their files on PyPI.

    python benchmarks/lock_release.py

It holds the versions of constraints.txt that `verydeep` and its build need, for Linux on x86-64 and Python 3.11. torch
is missing: its builds for CPUs and for each version of CUDA are different files of one version, from different servers,
and the user chooses among them.
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from verydeep.processes import python_command

ROOT = Path(__file__).parents[1]
HEAD = """# Written by benchmarks/lock_release.py: what a release needs besides torch (Linux on x86-64, Python 3.11).
# pip install --require-hashes -r requirements-release.txt
"""


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [name for name in project["project"]["dependencies"] if not name.startswith("torch>")]
    needed += project["build-system"]["requires"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = python_command("-m", "pip", "--isolated", "install", "--dry-run", "--ignore-installed", "--quiet")
        command += ["--index-url", "https://pypi.org/simple", "--only-binary", ":all:", "--report", str(report)]
        command += ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_27_x86_64"]
        command += ["--platform", "manylinux_2_17_x86_64", "--platform", "manylinux2014_x86_64"]
        command += ["--python-version", "3.11", "--target", folder, "-c", str(ROOT / "constraints.txt"), *needed]
        subprocess.run(command, check=True)
        found = json.loads(report.read_text())["install"]
    lines = sorted(
        f"{each['metadata']['name'].lower()}=={each['metadata']['version']} "
        f"--hash=sha256:{each['download_info']['archive_info']['hashes']['sha256']}\n"
        for each in found
    )
    (ROOT / "requirements-release.txt").write_text(HEAD + "".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
