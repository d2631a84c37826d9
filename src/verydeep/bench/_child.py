"""The program of a measuring process, which is pinned to as many cores as its tasks have threads.

The first message says how many threads to use and on which cores; every other one is answered with a measurement.
"""

import json
import os
import sys

from verydeep.processes import messages


def main() -> None:
    """Measure whatever the parent asks for, until it closes standard input."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print must not mix with the answers
    received = messages()
    options = next(received)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, options["cores"])  # before libraries start their threads
    from verydeep.bench._measurements import MEASUREMENTS
    from verydeep.cpu import cpu_settings

    with cpu_settings(options["threads"]):
        for message in received:
            answer = MEASUREMENTS[message.pop("task")](**message)
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
