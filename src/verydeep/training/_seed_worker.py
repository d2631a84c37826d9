"""What `SeedProcess` runs: one seed, until it has ended or standard input is closed."""

import os
import signal
import sys
import threading
from dataclasses import replace

import torch

from verydeep.errors import UserError
from verydeep.training._interrupt import interruptible
from verydeep.training._report import Lines, Report
from verydeep.training._seeds_folder import Seeds
from verydeep.training._train import Interrupted, resume, train


def main(folder: str, seed: str, root: str, tensorboard: str) -> int:
    """Start or continue the run of a seed; return 0, 2 for what the user can mend, or 130 when asked to stop."""
    with interruptible():  # from the beginning: who is asked to stop before training ends as soon as it starts
        threading.Thread(target=_stop_with_input, daemon=True).start()
        return _train(Seeds.load(folder), int(seed), root, tensorboard)


def _train(seeds: Seeds, number: int, root: str, tensorboard: str) -> int:
    torch.set_flush_denormal(True)  # as the command does
    report: Report = Lines()
    if tensorboard:
        from verydeep.training._tensorboard import TensorBoard

        report = TensorBoard(report)
    try:
        if seeds.has_started(number):
            resume(seeds.folder(number), root=root or None, report=report)
        else:
            train(replace(seeds.config, seed=number), seeds.folder(number), root=root or None, report=report)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except (Interrupted, KeyboardInterrupt):
        return 130
    return 0


def _stop_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)  # unbuffered: a lock on sys.stdin would be in the way when the interpreter ends
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
