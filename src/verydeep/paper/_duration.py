"""Long durations in words, for messages and pages."""

import math


def format_duration(seconds: float) -> str:
    """Hours and minutes, rounded up to the minute: `5 h 12 min`, `3 min`, or `nothing` for zero."""
    minutes = math.ceil(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min" if minutes else "nothing"
