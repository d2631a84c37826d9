"""Killed at any instant, a run goes on to the very same end.

Processes that die are forked from a fresh interpreter, which has imported torch once and never computed with it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Dies before the n-th file operation inside the run's folder, for every n (or every third): a hook of the interpreter
# sees them all.
DYING = '''
import json, os, sys
from dataclasses import replace
from pathlib import Path
import sklearn.metrics, torch, torch._dynamo
from torch import nn
from safetensors import safe_open
from verydeep.data import DataConfig, Dataset, Split, Task
from verydeep.training import ModelConfig, OptimConfig, ScheduleConfig, TrainConfig, train
import verydeep.training._trainer as trainer
import verydeep.training.run._state as state

trainer._SYNC_EVERY = 5  # so that this small set has checkpoints inside an epoch
CHANGES = {
    "finished": dict(epochs=2),
    "short epochs": dict(epochs=5, checkpoint_every=1e9, snapshots=2),
    "adam": dict(epochs=2, optim=OptimConfig("adam", 0.01)),
    "muon": dict(epochs=2, optim=OptimConfig("muon", 0.01)),
    "regression": dict(epochs=2, metric="mae", evaluate_test="end"),
    "multilabel": dict(epochs=2, metric="roc_auc", evaluate_test="end"),
    "stopped early": dict(epochs=9, patience=1, optim=OptimConfig(lr=1e-9)),
    "diverged": dict(epochs=9, optim=OptimConfig(lr=20.0), divergence_factor=2.0, evaluate_test=False,
                     schedule=ScheduleConfig("one-cycle", warmup=0.9)),
}
state._PAUSE = 1e9  # so that only checkpoint_every counts
scenario, root = sys.argv[1], Path(sys.argv[2])
config = replace(
    TrainConfig(DataConfig("digits"), ModelConfig(depth=2, width=4), OptimConfig(lr=0.1), batch_size=10, threads=1,
                checkpoint_every=0.0),
    **CHANGES[scenario],
)

TASK = {
    "regression": Task("regression", ("p", "q"), (1.0, 2.0), (3.0, 4.0)), "multilabel": Task("multilabel", ("p", "q")),
}.get(scenario)


def split(samples):
    y = torch.arange(samples) % 3
    x = torch.sin(torch.arange(samples * 6.0)).view(samples, 6) + y[:, None]
    if TASK is None:
        return Split(x, y)
    return Split(x, torch.stack([y % 2, y // 2], 1).float(), task=TASK)


def attempt(path, die_at=None):
    """Start or continue in a process of its own; the operation it died before, or None."""
    note, pid = root / "note", os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, 9), code
        return note.read_text() if code == 9 else None
    seen = 0

    def hook(event, arguments):
        nonlocal seen
        writes = event == "open" and str(arguments[1]) != "r" and arguments[1] is not None
        if event in ("os.rename", "os.remove", "os.mkdir") or writes:
            if str(arguments[0]).startswith(str(path)):
                seen += 1
                if seen == die_at:
                    os.write(os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), f"{event} {arguments[0]}".encode())
                    os._exit(9)

    if die_at is not None:
        sys.addaudithook(hook)
    try:
        data = Dataset("tiny", split(75), split(20), split(20), () if TASK else tuple("abc"), task=TASK)
        train(config, path, resume=True, dataset=data)
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def outcome(path):
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    summary = json.loads((path / "summary.json").read_text())
    for line in (*lines, summary["last"], summary["best"]):
        del (line or {"seconds": 0})["seconds"]
    with safe_open(max((path / "checkpoint").glob("*.safetensors")), "pt") as file:
        state = {name: file.get_tensor(name).tolist() for name in file.keys()}
    kept = sorted(str(file.relative_to(path)) for file in path.rglob("*"))
    snapshots = [file.read_bytes() for file in sorted((path / "snapshots").glob("*"))]
    return [repr(lines), repr(summary), repr(state), (path / "model.safetensors").read_bytes(), snapshots, kept]


attempt(root / "whole")
whole, died, wrong = outcome(root / "whole"), [], []
every = int(sys.argv[3])
while True:
    path = root / f"{len(died)}"
    before = attempt(path, every * len(died) + 1)
    if before is None:
        break
    died.append(before.replace(str(path), ""))
    attempt(path, 3)  # and once more, early in the next attempt
    attempt(path)
    if outcome(path) != whole:
        wrong.append([before, [a == b for a, b in zip(outcome(path), whole)]])
status = json.loads((root / "whole" / "summary.json").read_text())["status"]
print(json.dumps({"died": died, "wrong": wrong, "status": status}))
'''


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "every"),  # those that write the same files in the same order as "finished" are tried at every third
    [
        *(("finished", 1), ("short epochs", 1), ("stopped early", 1), ("diverged", 1)),
        *(("adam", 3), ("muon", 3), ("regression", 3), ("multilabel", 3)),
    ],
)
def test_dying_before_any_file_operation_changes_nothing(scenario: str, every: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DYING, scenario, str(tmp_path), str(every)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == (scenario if scenario in ("stopped early", "diverged") else "finished")
    assert found["wrong"] == []
    touched = " ".join(found["died"])
    assert len(found["died"]) > 10
    for name in ("config.json", "metrics.jsonl", "model.safetensors", "checkpoint/", "summary.json", "events.log"):
        assert name in touched or every > 1
    assert ("snapshots/" in touched) == (scenario == "short epochs")
