"""What `WorkerProcess` runs: a worker, until the study is complete or standard input is closed."""

import json
import os
import signal
import sys
import threading
from pathlib import Path

from verydeep.errors import UserError
from verydeep.search._budget import Budget
from verydeep.search._open import open_study
from verydeep.search._worker import work
from verydeep.training import interruptible


def main(folder: str) -> int:
    """Work on the study in `folder` as the first line of standard input says."""
    options = json.loads(_first_line())
    try:
        with interruptible():  # from the beginning: who is asked to stop before it works ends as soon as it starts
            threading.Thread(target=_stop_with_input, daemon=True).start()
            study = open_study(Path(folder), options["storage"], options["heartbeat"])
            work(study, Path(folder), options["root"], Budget(options["seconds"], options["epochs"]), print)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


def _first_line() -> bytes:
    """Of standard input, and not a byte more: the end of it is for another thread to wait for."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(sys.stdin.fileno(), 1)
    return line


def _stop_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)  # unbuffered: a lock on sys.stdin would be in the way when the interpreter ends
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
