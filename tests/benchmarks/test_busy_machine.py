"""The summary of steps on a busy machine."""

import busy_machine


def test_threads_are_compared_within_rounds_by_the_median() -> None:
    times = {
        "now, 1 thread": [[2.0, 2.0, 9.0], [4.0, 4.0, 4.0], [2.0, 2.0, 2.0]],
        "now, 2 threads": [[1.0, 1.0, 90.0], [4.0, 4.0, 4.0], [3.0, 3.0, 3.0]],
        "before, 1 thread": [[2.0], [2.0], [2.0]],
        "before, 2 threads": [[2.0], [8.0], [6.0]],
    }
    summary = busy_machine._summary(times)
    assert summary["now, 1 thread"]["minimum_ms"] == 2.0
    assert summary["now, two threads to one"] == [0.5, 1.0, 1.5]
    assert summary["before, two threads to one"] == [1.0, 3.0, 4.0]
    assert summary["two threads, now to before"] == [0.5, 0.5, 0.5]


def test_an_earlier_version_takes_fewer_steps() -> None:
    assert busy_machine._count(60, "now, 2 threads") == 60
    assert busy_machine._count(60, "before, 2 threads") == 10
    assert busy_machine._count(6, "before, 1 thread") == 2
