"""The weights that a run keeps while it trains."""

from pathlib import Path

import pytest
import torch

from verydeep.data import Dataset
from verydeep.errors import UserError
from verydeep.training import Run, train
from verydeep.training.run._snapshots import save_rounded_snapshot, snapshot_epochs

from .conftest import Configure


@pytest.mark.parametrize(
    ("epochs", "snapshots", "kept"),
    [(10, 0, set()), (10, 1, {0, 10}), (10, 5, {0, 2, 4, 6, 8, 10}), (3, 10, {0, 1, 2, 3}), (7, 2, {0, 4, 7})],
)
def test_snapshots_are_spread_evenly_from_start_to_end(epochs: int, snapshots: int, kept: set[int]) -> None:
    assert snapshot_epochs(epochs, snapshots) == kept


@pytest.mark.parametrize("half_life", [None, 0.5])
def test_a_snapshot_has_the_weights_that_the_epoch_was_evaluated_with(
    configure: Configure, unvalidated: Dataset, tmp_path: Path, half_life: float | None
) -> None:
    changes = {"ema_half_life": half_life, "evaluate_test": "epoch"}
    run = train(configure(epochs=4, snapshots=2, **changes), tmp_path / "kept", dataset=unvalidated, progress=False)
    assert run.snapshots == [0, 2, 4]
    start, last = run.model_at(0).state_dict(), run.model_at(4).state_dict()
    assert all(torch.equal(value, run.model.state_dict()[name]) for name, value in last.items())
    assert not torch.equal(start["classifier.weight"], last["classifier.weight"])
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(run.model_at(2)(unvalidated.test.x), unvalidated.test.y)
    assert run.metrics[1].test_loss == pytest.approx(loss.item(), rel=1e-5)


def test_a_run_keeps_no_snapshots_unless_asked(configure: Configure, tiny: Dataset, tmp_path: Path) -> None:
    run = train(configure(), tmp_path / "run", dataset=tiny, progress=False)
    assert run.snapshots == []
    assert not (run.path / "snapshots").exists()
    with pytest.raises(UserError, match=r"no snapshot after 1 epochs; it kept none \(setting: snapshots\)"):
        run.model_at(1)


def test_a_missing_or_damaged_snapshot_is_named(configure: Configure, tiny: Dataset, tmp_path: Path) -> None:
    run = train(configure(snapshots=1), tmp_path / "run", dataset=tiny, progress=False)
    with pytest.raises(UserError, match="there are those after 0, 2 epochs"):
        run.model_at(1)
    (run.path / "snapshots" / "notes.safetensors").write_bytes(b"mine")
    (run.path / "snapshots" / "000002.safetensors").write_bytes(b"torn")
    assert Run.load(run.path).snapshots == [0, 2]
    with pytest.raises(UserError, match="000002"):
        run.model_at(2)


def test_a_rounded_snapshot_takes_a_quarter_and_answers_alike(
    configure: Configure, unvalidated: Dataset, tmp_path: Path
) -> None:
    run = train(configure(snapshots=1), tmp_path / "run", dataset=unvalidated, progress=False)
    with torch.no_grad():
        exact = run.model(unvalidated.test.x)
        file = run.path / "snapshots" / "000002.safetensors"
        before = sum(value.numel() * 4 for value in run.model.state_dict().values())
        save_rounded_snapshot(run.path, 2, run.model.state_dict())
        rounded = run.model_at(2)(unvalidated.test.x)
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, rtol=0.02, atol=0.02)
    header = 8 + int.from_bytes(file.read_bytes()[:8], "little")
    assert file.stat().st_size - header < 0.3 * before + 100
