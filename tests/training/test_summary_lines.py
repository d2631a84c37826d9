"""What `verydeep train` says before it starts."""

from pathlib import Path

import pytest

from verydeep.cli import main


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("kind", "  target 'kind': classification, 2 classes; 75.0% of the training samples are 'b'"),
        ("size", "  target 'size': regression, 0.5 to 39.5"),
        ("red,blue", "  multilabel, 2 labels; share of the training samples that have it: 'red' 50.0%, 'blue' 0.0%"),
    ],
)
def test_the_task_and_the_target_are_described(
    target: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{i * 7 % 5},{'bbba'[i % 4]},{i}.5,{int(i % 2 == 0)},0" for i in range(40)]
    for split in ("train", "test"):
        (tmp_path / f"{split}.csv").write_text("\n".join(["x,kind,size,red,blue", *rows]))
    more = ["--validation", "0", "--epochs", "1", "--depth", "2", "--width", "4", "--folder", str(tmp_path / "run")]
    assert main(["train", str(tmp_path), "--target", target, *more]) == 0
    printed = capsys.readouterr()
    assert expected in (printed.out + printed.err).splitlines()
