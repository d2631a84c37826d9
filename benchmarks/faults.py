"""A campaign of faults: kills, I/O errors, torn files, mutated inputs, hostile names, absurd options.

    python benchmarks/faults.py                            all that is missing of the campaign, about eight core-hours
    python benchmarks/faults.py --minutes 10               ten minutes of it; the same command continues
    python benchmarks/faults.py --only kills io --trials 50    at most 50 trials of each of these parts
    python benchmarks/faults.py --only inputs --first 17 --trials 1 --again    trial 17, with all that is known about it
    python benchmarks/faults.py --again                    first the trials that have failed, then what is missing
    python benchmarks/faults.py --trials 0                 only the summary of the trials so far

Commands run in processes forked from one that has imported everything, with the operating system's file operations
replaced (`_file_faults.py`). Trial n of a part is the same for the same seed. Every trial becomes a line of
`FOLDER/trials.jsonl`, and has a verdict:

    same           after the fault, the same command continued to the same bits, or there was nothing to continue
    success        a changed input or option was accepted
    clear error    exit code 2 and at most two lines
    damage stays   a file that was complete was damaged; it is not used again, or the command names what was lost
    ran until the limit    an absurd option asked for more than the time of a trial

Everything else is a failure: a traceback, a hang, too much memory, a crash, an unclear message, a run that cannot be
continued (stuck), temporary files or processes left behind, a result that is silently wrong. The summary is
results/faults.json and the page results/faults.md; the exit code is 1 if a trial failed.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _file_faults import VARIABLE, FileFaults

from verydeep.files import write_atomic
from verydeep.processes import python_command

ROOT = Path(__file__).parents[1]
SKIPPED = {"skipped: no PostgreSQL", "skipped: no chromium"}
GOOD = {"same", "success", "clear error", "damage stays", "ran until the limit"} | SKIPPED
MOST_FAILURES = 60  # of each part, in the summary; trials.jsonl has all

# The number of trials of the whole campaign.
TARGETS = {
    "kills": 1000,
    "io": 1000,
    "torn": 500,
    "two": 200,
    "inputs": 70_000,
    "tables": 30_000,
    "commands": 1000,
    "options": 2000,
    "pages": 16,
    "servers": 4,  # five kills each
}
# Commands by turns; those that take long come seldom.
TURNS = ["train", "predict", "seeds", "data get", "search", "prune", "train", "explore", "seeds", "train", "search"]
TURNS = [*TURNS * 3, "reproduce", *TURNS, "analyze", *TURNS, "report", *TURNS * 3, "depth"]


class Campaign:
    """The parts of the campaign, prepared when they are first needed.

    Args:
        faults: The plan of this process.
        scratch: A folder for everything, in memory if possible, because syncing a disk takes most of the time.
        seed: The seed of all trials.
    """

    def __init__(self, faults: FileFaults, scratch: Path, seed: int) -> None:
        from _fault_commands import Disturbed
        from _fault_inputs import Inputs

        self.scratch, self.seed = scratch, seed
        self.disturbed, self.inputs = Disturbed(faults, scratch), Inputs(faults, scratch)
        self._prepared: set[str] = set()

    def trial(self, part: str, number: int) -> dict[str, Any]:
        """Carry out one trial."""
        draw = random.Random(f"{self.seed} {part} {number}")
        if part in ("kills", "io", "torn", "two"):
            name = TURNS[number % len(TURNS)]
            turn = TURNS[: number % len(TURNS)].count(name) + number // len(TURNS) * TURNS.count(name)
            self._once(name, lambda: self.disturbed.prepare([name]))
            found = {
                "kills": lambda: self.disturbed.kill(name, turn, draw),
                "io": lambda: self.disturbed.fail(name, draw),
                "torn": lambda: self.disturbed.tear(name, draw),
                "two": lambda: self.disturbed.two(name, draw),
            }[part]()
            return {"command": name} | found
        if part in ("inputs", "commands", "options"):
            self._once("inputs", self.inputs.prepare)
            if part == "options" or (part == "commands" and number % 5 == 0):
                return self.inputs.absurd(draw, real=part == "commands")
            return self.inputs.case(draw, real=part == "commands")
        if part == "tables":
            import _fault_tables

            self._once("tables", lambda: _fault_tables.prepare(self.scratch / "tables"))
            return _fault_tables.trial(self.scratch / "tables", self.seed, number)
        if part == "pages":
            import _fault_pages

            return _fault_pages.trial(self.scratch, number)
        import _fault_servers

        return _fault_servers.trial(self.scratch, draw)

    def _once(self, what: str, prepare: Callable[[], None]) -> None:
        if what not in self._prepared:
            prepare()
            self._prepared.add(what)


PAGE = """# Faults

What happens to a command that is killed, runs out of disk, or is given a damaged file. Commands train networks
of a few units on a table of 60 rows, so that a trial takes a fraction of a second; nothing else about them is
simplified. The numbers are those of `results/faults.json`, which `python benchmarks/faults.py` writes and continues.

{table}

*Continued* trials repeat the command without the fault, and end with the same files and numbers, bit for bit, as a
command that was never disturbed. *Accepted* inputs are read although something was changed in them, or an option was
valid after all. *Refused* ones end with exit code 2 and one or two lines that say what is wrong. {failed} These
trials took {hours:.1f} core-hours; no command took more than {megabytes:,} MB of memory. A campaign that has not
reached the planned numbers is continued by the same command.

- **kills**: SIGKILL in place of every file operation by turns, or a random signal at a random instant, of `train`,
  `train --seeds`, `search`, `reproduce`, `depth`, `analyze`, `prune`, `report`, `explore`, `predict` and `data get`.
- **io**: an operation fails with `ENOSPC`, `EDQUOT` or `EIO`, once or from then on; a write is short or torn; power
  is lost, which undoes everything that was not synced.
- **torn**: a file is truncated, emptied, filled with zeros or changed by a bit after a kill.
- **two**: the same command runs twice at once in one folder.
- **inputs, tables, commands**: changes to images, arrays, archives, configurations, checkpoints, weights, journals,
  results and tables that know their structure; commands are real processes, the others forked ones with limits of
  memory and time.
- **options**: values that nobody can mean. **pages**: names of columns and classes that are programs, in every page,
  in a real browser. **servers**: searches whose PostgreSQL server is killed five times each.
"""


def write_page(path: Path, parts: dict[str, Any]) -> None:
    """Write the page about the campaign."""
    lines = ["| | trials | planned | continued | accepted | refused | failed |", "|---|---|---|---|---|---|---|"]
    for part, found in parts.items():
        verdicts = found["verdicts"]
        continued = verdicts.get("same", 0) + verdicts.get("damage stays", 0)
        accepted = verdicts.get("success", 0) + verdicts.get("ran until the limit", 0)
        counts = (
            found["trials"],
            found["target"],
            continued,
            accepted,
            verdicts.get("clear error", 0),
            found["failed"],
        )
        lines.append(f"| {part} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    failed = sum(found["failed"] for found in parts.values())
    kinds = Counter[str]()
    for found in parts.values():
        kinds.update({verdict: count for verdict, count in found["verdicts"].items() if verdict not in GOOD})
    reasons = ", ".join(f"{verdict} ({count:,})" for verdict, count in kinds.most_common())
    page = PAGE.format(
        table="\n".join(lines),
        failed=f"Failed: {reasons}." if failed else "None failed.",
        hours=sum(found["core_minutes"] for found in parts.values()) / 60,
        megabytes=max((found["largest_megabytes"] for found in parts.values()), default=0),
    )
    write_atomic(path, page)


def read_trials(path: Path, seed: int) -> dict[str, dict[int, dict[str, Any]]]:
    """The trials so far, by part and number; a line that was cut off is left out."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record["seed"] == seed:
            found.setdefault(record["part"], {})[record["number"]] = record
    return found


def summarise(trials: dict[str, dict[int, dict[str, Any]]]) -> dict[str, Any]:
    """The numbers of verdicts, and what failed."""
    parts: dict[str, Any] = {}
    for part, target in TARGETS.items():
        records = list(trials.get(part, {}).values())
        if not records:
            continue
        groups: dict[str, Counter[str]] = {}
        for record in records:
            groups.setdefault(record.get("kind") or record.get("command") or part, Counter())[record["verdict"]] += 1
        failures = [record for record in records if record["verdict"] not in GOOD]
        parts[part] = {
            "trials": len(records),
            "target": target,
            "failed": len(failures),
            "verdicts": dict(Counter(record["verdict"] for record in records).most_common()),
            "by": {name: dict(counts.most_common()) for name, counts in sorted(groups.items())},
            "core_minutes": round(sum(record["seconds_taken"] for record in records) / 60, 1),
            "largest_megabytes": max((record.get("megabytes", 0) for record in records), default=0),
            "failures": failures[:MOST_FAILURES],
        }
    return parts


class Schedule:
    """What is left to do: always a trial of the part that has taken the least time, so that a short campaign has all.

    Args:
        parts: The parts to carry out.
        trials: The trials so far.
        first: The number of the first trial, if there is a number of trials.
        most: The number of trials of each part; None for those of the whole campaign.
        again: Begin with those that have failed.
    """

    def __init__(
        self,
        parts: list[str],
        trials: dict[str, dict[int, dict[str, Any]]],
        first: int = 0,
        most: int | None = None,
        again: bool = False,
    ) -> None:
        self._left: dict[str, Iterator[int]] = {}
        self._spent: dict[str, float] = {}
        for part in parts:
            wanted = range(TARGETS[part]) if most is None else range(first, first + most)
            done = trials.get(part, {})
            failed = [number for number in wanted if again and number in done and done[number]["verdict"] not in GOOD]
            self._left[part] = iter([*failed, *(number for number in wanted if number not in done)])
            self._spent[part] = sum(record["seconds_taken"] for record in done.values())

    def __iter__(self) -> Iterator[tuple[str, int]]:
        while self._left:
            part = min(self._left, key=self._spent.__getitem__)
            number = next(self._left[part], None)
            if number is None:
                del self._left[part]
            else:
                yield part, number

    def took(self, part: str, seconds: float) -> None:
        """Note the time of a trial."""
        self._spent[part] += seconds


def start(faults: FileFaults) -> None:
    """Become a process that meets faults, with one thread."""
    if os.environ.get(VARIABLE) != str(faults.path):
        more = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = python_command(*sys.argv)
        os.execve(command[0], command, os.environ | faults.environment | more)
    import torch
    import torch._dynamo  # the first step of an optimiser needs it
    from _fault_commands import serve_archives
    from _warm import adopt_orphans, fork_workers

    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which cleans up; commands must not inherit it
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    adopt_orphans()
    fork_workers()
    serve_archives()


def scratch_folder() -> Path:
    """The same folder after this program has started itself again, in memory if there is any."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE]).parent
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="verydeep-faults-", dir=memory if os.access(memory, os.W_OK) else None))


def carry_out(campaign: Campaign, options: argparse.Namespace, trials: dict[str, dict[int, dict[str, Any]]]) -> None:
    """Carry out trials until there are no more, or the time is over."""
    until = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
    options.folder.mkdir(parents=True, exist_ok=True)
    shown, schedule = time.monotonic(), Schedule(options.only, trials, options.first, options.trials, options.again)
    with (options.folder / "trials.jsonl").open("a", encoding="utf-8") as file:
        for part, number in schedule:
            if time.monotonic() > until:
                return
            began = time.process_time(), sum(os.times()[2:4])
            record = {"part": part, "number": number, "seed": options.seed} | campaign.trial(part, number)
            taken = time.process_time() - began[0] + sum(os.times()[2:4]) - began[1]
            record["seconds_taken"] = round(taken, 3)
            schedule.took(part, taken)
            trials.setdefault(part, {})[number] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
            if record["verdict"] not in GOOD or options.trials == 1:
                print(json.dumps(record), flush=True)
            if time.monotonic() > shown + 60:
                shown = time.monotonic()
                print({part: len(done) for part, done in trials.items()}, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TARGETS, default=list(TARGETS), metavar="PART")
    parser.add_argument("--trials", type=int, help="of each part; by default, as many as the campaign needs")
    parser.add_argument("--first", type=int, default=0, help="with --trials, the number of the first")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after this time")
    parser.add_argument("--again", action="store_true", help="repeat trials that have failed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "faults", help="where trials are recorded")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "faults.json")
    options = parser.parse_args()
    options.folder = options.folder.absolute()
    scratch = scratch_folder()
    try:
        faults = FileFaults(scratch)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    start(faults)
    from _result import write_result

    trials = read_trials(options.folder / "trials.jsonl", options.seed)
    try:
        carry_out(Campaign(faults, scratch, options.seed), options, trials)
    finally:
        faults.plan(None)
        shutil.rmtree(scratch, ignore_errors=True)
    parts = summarise(trials)
    write_result(
        options.out, {"what": "faults, and how commands end and continue", "seed": options.seed, "parts": parts}
    )
    write_page(options.out.with_suffix(".md"), parts)
    for part, found in parts.items():
        print(f"{part:9} {found['trials']:6} of {found['target']:6}  {found['verdicts']}")
    return int(any(found["failed"] for part, found in parts.items() if part in options.only))


if __name__ == "__main__":
    sys.exit(main())
