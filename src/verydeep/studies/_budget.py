"""How much the training of a study may cost."""

import re
from dataclasses import dataclass

from verydeep.errors import UserError

_UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Budget:
    """When to stop; by default, when everything is trained.

    Attributes:
        seconds: Time from now.
        epochs: Epochs of all trainings of the study together, including those trained before.

    Example:
        >>> from verydeep.studies import Budget
        >>> Budget.read("90min").seconds
        5400.0
        >>> Budget.read("500 epochs").epochs
        500
    """

    seconds: float | None = None
    epochs: int | None = None

    @classmethod
    def read(cls, text: str) -> "Budget":
        """Parse a budget.

        Args:
            text: A time such as `90min` or `2h`, or a number of epochs such as `500 epochs`.
        """
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip())
        if found and float(found[1]) == 0:
            raise UserError(f"budget {text!r}: must be positive; without a budget, everything is trained")
        if found and found[2] in ("epoch", "epochs") and "." not in found[1]:
            return cls(epochs=int(found[1]))
        if found and found[2] in _UNITS:
            return cls(seconds=float(found[1]) * _UNITS[found[2]])
        raise UserError(f"budget {text!r}: expected a time or a number of epochs, such as 30min, 2h or '500 epochs'")
