"""How a measurement is kept: with the command, the machine, the versions and the date."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verydeep.files import write_atomic
from verydeep.training import environment


def write_result(path: Path, result: dict[str, Any]) -> None:
    facts = {
        "environment": environment(),
        "load_average": round(os.getloadavg()[0], 2),  # above the number of cores, others were at work too
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_atomic(path, json.dumps(result | facts, indent=1) + "\n")
