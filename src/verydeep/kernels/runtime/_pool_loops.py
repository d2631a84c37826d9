"""What the threads of a pool do, as functions without Python: `lead` for the thread that has work, `follow` for others.

They share a few int64 (the constants below are their places). The leader writes the number of jobs to LEFT. Whoever
lowers LEFT from n to n - 1 has taken job n - 1 of the leader's table; a thread that has taken nothing reads nothing of
it. After each job its thread lowers UNFINISHED. The leader takes jobs like the others and then waits until UNFINISHED
is 0, so it waits for jobs that were taken, and never for a thread that has lost its core before it took one.

A follower without work yields its core again and again. If nobody else wants the core, that takes no time, and the next
job is noticed at once. If somebody does, or after a while, the follower sleeps until the leader writes to a pipe. A
follower that loses its core while it runs a job makes the leader wait, and therefore stays away for a while.

These kernels need more than the language of `ir`: atomic operations and loops that end on a condition. They are
compiled but not interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from llvmlite import ir

from verydeep.kernels.ir._control import when
from verydeep.kernels.ir._emitter import emitter
from verydeep.kernels.ir._kernel import call_address, kernel
from verydeep.kernels.ir._llvm import IRValue, LLVMEmitter
from verydeep.kernels.ir._processor import X86
from verydeep.kernels.ir._values import Condition, Int, IntPtr
from verydeep.kernels.runtime._serve import run_job

_LINE = 16  # int64 between places that different threads write, which must not share a cache line
LEFT, UNFINISHED, SLEEPING, STOP, TABLE, CONTROL = (n * _LINE for n in range(6))
# Constants: functions of the C library, and what they are called with.
YIELD, SLEEP, CLOCK, WALL_CLOCK, CORE_CLOCK, READ, READ_FROM, WRITE, WRITE_TO = (6 * _LINE + n for n in range(9))
SIZE = 8 * _LINE
MOST_WOKEN = 256  # at once

_SPIN = 300_000  # nanoseconds of waiting for the next job, longer than a training step does without one
_CONTENDED = 30_000  # nanoseconds after which a thread that yielded its core knows that others want it
_BRIEFLY = 50_000  # nanoseconds of waiting for the last job without sleeping
_NAP = 50  # microseconds between two looks at a job that takes longer
_LOST = 500_000  # nanoseconds without a core during jobs, after which a follower stays away
_AWAY, _LONGEST_AWAY = 10, 100_000  # times as long as that, in microseconds at most
_INTEGER, _WORD = ir.IntType(64), ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()


@kernel
def lead(pool: IntPtr, table: IntPtr, jobs: Int) -> None:
    """Run all jobs of a table, with the help of other threads as far as they have time."""
    _write(pool + TABLE, Int(table.handle))
    _save_control(pool + CONTROL)
    _write(pool + UNFINISHED, jobs)
    _write(pool + LEFT, jobs)
    sleeping = _read(pool + SLEEPING)
    with when(sleeping > 0):
        most = _smaller(jobs - 1, _constant(MOST_WOKEN))
        call_address(pool[WRITE], [pool[WRITE_TO], Int(pool.handle), _smaller(sleeping, most)])
    _run_jobs(pool)
    clock = _Clock(pool, WALL_CLOCK)
    since = clock.now()
    with _forever() as leave_if:
        leave_if(_read(pool + UNFINISHED) == 0)
        with when(clock.now() - since > _BRIEFLY):
            call_address(pool[SLEEP], [_constant(_NAP)])


@kernel
def follow(pool: IntPtr) -> None:
    """Help the leaders of a pool until STOP is set."""
    clock, core = _Clock(pool, WALL_CLOCK), _Clock(pool, CORE_CLOCK)
    with _forever() as leave_if:
        leave_if(_read(pool + STOP) != 0)
        started, started_core = clock.now(), core.now()
        _run_jobs(pool)
        since = clock.now()
        lost = (since - started) - (core.now() - started_core)
        with when(lost > _LOST):
            call_address(pool[SLEEP], [_smaller(lost * _AWAY // 1000, _constant(_LONGEST_AWAY))])
        with _forever() as stop_waiting_if:
            stop_waiting_if(_read(pool + LEFT) > 0)
            before = clock.now()
            stop_waiting_if(before - since > _SPIN)
            call_address(pool[YIELD], [])
            stop_waiting_if(clock.now() - before > _CONTENDED)
        (pool + SLEEPING).fetch_add(1)
        with when(_read(pool + LEFT) == 0), when(_read(pool + STOP) == 0):
            call_address(pool[READ], [pool[READ_FROM], clock.place, _constant(1)])
        (pool + SLEEPING).fetch_add(-1)


def _run_jobs(pool: IntPtr) -> None:
    """Take jobs and run them until none is left."""
    with _forever() as leave_if:
        left = _read(pool + LEFT)
        leave_if(left <= 0)
        with when(_replace(pool + LEFT, left, left - 1)):
            _load_control(pool + CONTROL)
            run_job(IntPtr(_read(pool + TABLE).handle), left - 1)
            (pool + UNFINISHED).fetch_add(-1)


class _Clock:
    """The time, or the time that this thread has had a core, in nanoseconds."""

    def __init__(self, pool: IntPtr, name: int) -> None:
        self.pool, self.name = pool, name
        pair = _builder().alloca(_INTEGER, 2)  # seconds and nanoseconds
        self.place = Int(_builder().ptrtoint(pair, _INTEGER))

    def now(self) -> Int:
        call_address(self.pool[CLOCK], [self.pool[self.name], self.place])
        pair = IntPtr(self.place.handle)
        return pair[0] * 1_000_000_000 + pair[1]


@contextmanager
def _forever() -> Iterator[Callable[[Condition], None]]:
    """Repeat the body of a `with` statement; it gets a function that leaves the loop if a condition holds."""
    builder = _builder()
    inside, after = builder.append_basic_block(), builder.append_basic_block()
    builder.branch(inside)
    builder.position_at_end(inside)

    def leave_if(condition: Condition) -> None:
        further = builder.append_basic_block()
        builder.cbranch(condition.handle, after, further)
        builder.position_at_end(further)

    yield leave_if
    builder.branch(inside)
    builder.position_at_end(after)


def _builder() -> ir.IRBuilder:
    return cast("LLVMEmitter", emitter()).builder


def _place(ptr: IntPtr) -> IRValue:
    return _builder().inttoptr(ptr.handle, _INTEGER.as_pointer())


def _read(ptr: IntPtr) -> Int:
    """An integer that other threads write."""
    return Int(_builder().load_atomic(_place(ptr), "seq_cst", 8))


def _write(ptr: IntPtr, value: Int) -> None:
    """Write an integer that other threads read, after everything before it."""
    _builder().store_atomic(value.handle, _place(ptr), "seq_cst", 8)


def _replace(ptr: IntPtr, old: Int, new: Int) -> Condition:
    """Whether the integer was `old`; it is `new` then."""
    return Condition(_builder().extract_value(_builder().cmpxchg(_place(ptr), old.handle, new.handle, "seq_cst"), 1))


def _constant(value: int) -> Int:
    return Int(emitter().integer(value))


def _smaller(a: Int, b: Int) -> Int:
    return Int(_builder().select((a < b).handle, a.handle, b.handle))


def _save_control(ptr: IntPtr) -> None:
    """Save x86's control register: how this thread rounds, and whether denormal numbers are 0."""
    if X86:
        _control("st", ptr)


def _load_control(ptr: IntPtr) -> None:
    """Load x86's control register: the bits of a job must not depend on the thread that runs it."""
    if X86:
        _control("ld", ptr)


def _control(name: str, ptr: IntPtr) -> None:
    builder, name = _builder(), f"llvm.x86.sse.{name}mxcsr"
    kind = ir.FunctionType(ir.VoidType(), [_BYTES])
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(function, [builder.inttoptr(ptr.handle, _BYTES)])
