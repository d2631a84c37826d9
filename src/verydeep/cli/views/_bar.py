"""A progress bar on stderr, if that is a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(task_name: str) -> Iterator[Callable[[float], None] | None]:
    """Show a bar while the body runs; call the yielded function with the fraction that is done, if it is not None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(task_name, total=1.0)
        yield lambda done: progress.update(task, completed=done)
