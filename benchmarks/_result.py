"""Writing a result with the command, machine, versions and date."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verydeep.files import write_atomic
from verydeep.training import environment


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Write a result as JSON; absolute paths in the commands, which name folders of this machine, are shortened."""
    metadata = {
        "environment": environment(),
        "load_average": round(os.getloadavg()[0], 2),  # above the number of cores, other work slowed this down
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_atomic(path, json.dumps(_without_folders(result | metadata), indent=1) + "\n")


def _without_folders(value: Any) -> Any:  # noqa: ANN401 - plain values
    if isinstance(value, dict):
        return {
            key: re.sub(r"(?<![^\s=])/\S*/", "", part)
            if key == "command" and isinstance(part, str)
            else _without_folders(part)
            for key, part in value.items()
        }
    return [_without_folders(part) for part in value] if isinstance(value, list) else value
