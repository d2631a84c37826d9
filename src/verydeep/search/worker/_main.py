"""The program of a worker process: works until the study is complete or standard input is closed."""

import json
import os
import signal
import sys
import threading
from pathlib import Path

from verydeep.errors import UserError
from verydeep.search._budget import Budget
from verydeep.search.study._open import open_study
from verydeep.search.worker._worker import work
from verydeep.training import interruptible


def main(folder: str) -> int:
    """Work on the study in `folder` with the options that the first line of standard input gives."""
    options = json.loads(_first_line())
    try:
        with interruptible():  # from the start, so that a request to stop that comes before the work begins is not lost
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
    """Read one line of standard input and not a byte more, because a thread waits for the end of it."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(sys.stdin.fileno(), 1)
    return line


def _stop_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)  # unbuffered, because a lock on sys.stdin would block the interpreter's exit
    signal.raise_signal(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
