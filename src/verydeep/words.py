"""Numbers as people write them."""


def plural(count: int, noun: str) -> str:
    """Count things: 1 epoch, 2 epochs."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
