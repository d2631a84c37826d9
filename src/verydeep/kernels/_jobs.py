"""The kernel that threads run: take the next job of a table until none is left.

The table is int64: the number of jobs taken, the number of jobs, for each job where its calls begin (and where the last
one's end), then the calls: the address of a kernel and its arguments, padded to as many as the longest takes.
"""

from collections.abc import Sequence

from llvmlite import ir

from verydeep.kernels._ir import INDEX, Kernel, N, Value, index, load_index, repeat

ARGUMENTS = 12
_BYTES = 8


def make_serve() -> Kernel:
    """`serve(table)`."""
    kind = ir.FunctionType(ir.VoidType(), [INDEX] * ARGUMENTS).as_pointer()

    def emit(table: N) -> None:
        builder = table.builder
        jobs = load_index(table + _BYTES)
        bounds = table + 2 * _BYTES
        calls = bounds + (jobs + 1) * _BYTES

        def take(_n: N, _: list[Value]) -> Sequence[Value]:
            taken = builder.inttoptr(table.value, INDEX.as_pointer())
            job = N(builder, builder.atomic_rmw("add", taken, index(1), "seq_cst"))
            with builder.if_then(job < jobs):
                first, last = (load_index(bounds + (job + i) * _BYTES) for i in (0, 1))
                repeat(last - first, [], lambda n, _: call(first + n))
            return ()

        def call(number: N) -> Sequence[Value]:
            row = calls + number * (_BYTES * (1 + ARGUMENTS))
            function = builder.inttoptr(load_index(row).value, kind)
            builder.call(function, [load_index(row + _BYTES * (1 + i)).value for i in range(ARGUMENTS)])
            return ()

        repeat(jobs, [], take)

    return Kernel("serve", 1, emit)
