from dataclasses import dataclass


@dataclass(frozen=True)
class Models:
    """List every network that can be created by name."""

    def run(self) -> None: ...
