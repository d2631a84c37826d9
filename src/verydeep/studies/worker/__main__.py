"""The program of a worker process that a study on this machine has started; see `verydeep.processes`."""

import sys
import traceback
from functools import partial

from verydeep.errors import UserError
from verydeep.processes import first_message, send_if_possible, stop_when_input_closes
from verydeep.studies._budget import Budget
from verydeep.studies._open import open_study
from verydeep.studies.storage._postgres import with_retry
from verydeep.studies.worker._worker import CRASHED, TrainingCrashed, work
from verydeep.terminal import echo
from verydeep.training import interruptible


def main() -> int:
    """Work on a study with the options of the first message until it is complete or standard input is closed."""
    options = first_message()
    sys.stdout = sys.stderr  # what libraries print must not mix with the messages to the parent
    try:
        with interruptible() as interrupt:
            # From the start, so that a request to stop that comes before the work begins is not lost.
            stop_when_input_closes()
            # The parent has reached the server, so it is worth waiting for.
            study = with_retry(
                lambda: open_study(options["folder"], artifacts=options["artifacts"], **options["store"])
            )
            work(
                study,
                root=options["root"],
                budget=Budget(options["seconds"], options["epochs"]),
                only=options["only"],
                tensorboard=options["tensorboard"],
                report=partial(print, flush=True),
                send=send_if_possible,
            )
    except UserError as error:
        echo(str(error), file=sys.stderr)
        return 0 if interrupt.requested else 2
    except TrainingCrashed as crash:
        traceback.print_exception(crash.__cause__)
        return CRASHED
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
