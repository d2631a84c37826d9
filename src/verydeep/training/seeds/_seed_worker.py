"""The process that trains one seed, until its run is finished or standard input is closed."""

import os
import signal
import sys
import threading
from dataclasses import replace

from verydeep.errors import UserError
from verydeep.training._interrupt import interruptible
from verydeep.training._progress import ProgressLines, TrainingProgress
from verydeep.training._train import Interrupted, resume, train
from verydeep.training.run._run import Run
from verydeep.training.seeds._seeds_folder import Seeds


def main(folder: str, seed: str, root: str, tensorboard: str) -> int:
    """Start or resume the run of a seed; return 0, 2 after a `UserError`, or 130 when asked to stop."""
    with interruptible():  # from the beginning, so that a request to stop before training counts too
        threading.Thread(target=_stop_when_input_closes, daemon=True).start()
        return _train(Seeds.load(folder), int(seed), root, tensorboard)


def _train(seeds: Seeds, number: int, root: str, tensorboard: str) -> int:
    progress: TrainingProgress = ProgressLines()
    if tensorboard:
        from verydeep.training._tensorboard import TensorBoard

        progress = TensorBoard(progress)
    try:
        if seeds.has_started(number):
            # A run that was continued on its own may have more epochs than the others.
            shorter = Run.load(seeds.folder(number)).config.epochs < seeds.config.epochs
            epochs = seeds.config.epochs if shorter else None
            resume(seeds.folder(number), epochs=epochs, root=root or None, progress=progress)
        else:
            train(replace(seeds.config, seed=number), seeds.folder(number), root=root or None, progress=progress)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except (Interrupted, KeyboardInterrupt):
        return 130
    return 0


def _stop_when_input_closes() -> None:
    os.read(sys.stdin.fileno(), 1)  # unbuffered: a lock on sys.stdin would block the end of the interpreter
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
