"""Long times in words."""

import math


def hours(seconds: float) -> str:
    """To the minute, rounded up."""
    minutes = math.ceil(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min" if minutes else "nothing"
