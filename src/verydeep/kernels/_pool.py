"""Threads for kernels: a few that wait, and are handed work which runs without Python's lock."""

import os
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Lock, Thread

Job = Callable[[], None]
_Done = SimpleQueue[BaseException | None]


class _Pool:
    """Threads that end with the process. A forked child has none of them, and starts its own."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[tuple[Job, _Done]] = SimpleQueue()
        self.threads = 0
        self.lock = Lock()

    def submit(self, jobs: Sequence[Job], done: _Done) -> None:
        with self.lock:
            for _ in range(self.threads, len(jobs)):
                Thread(target=_serve, args=(self.jobs,), name="verydeep-kernel", daemon=True).start()
                self.threads += 1
        for job in jobs:
            self.jobs.put((job, done))


def _serve(jobs: "SimpleQueue[tuple[Job, _Done]]") -> None:
    while True:
        job, done = jobs.get()
        try:
            job()
        except BaseException as error:  # it is raised again where the job came from
            done.put(error)
        else:
            done.put(None)
        del job, done  # they hold the tensors of a step that is over


_pool = _Pool()


def _forget() -> None:
    global _pool  # noqa: PLW0603 - the threads of the parent process
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def run_together(jobs: Sequence[Job]) -> None:
    """Run jobs at the same time, the first in the calling thread, and return when all are done."""
    done: _Done = SimpleQueue()
    _pool.submit(jobs[1:], done)
    errors: list[BaseException | None] = []
    try:
        jobs[0]()
    finally:
        errors = [done.get() for _ in jobs[1:]]
    for error in errors:
        if error is not None:
            raise error
