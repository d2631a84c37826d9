"""Writing a result with the command, machine, versions and date."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verydeep.files import write_atomic
from verydeep.training import environment


def write_result(path: Path, result: dict[str, Any]) -> None:
    metadata = {
        "environment": environment(),
        "load_average": round(os.getloadavg()[0], 2),  # above the number of cores, other work slowed this down
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_atomic(path, json.dumps(result | metadata, indent=1) + "\n")
