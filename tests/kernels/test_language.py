"""The language of kernels: what it refuses, what is compiled, cached and written down."""

import re
from pathlib import Path

import numpy as np
import pytest

from verydeep import kernels
from verydeep.errors import UserError
from verydeep.kernels.ir._control import loop, when
from verydeep.kernels.ir._interpreter import interpret
from verydeep.kernels.ir._kernel import Kernel, kernel
from verydeep.kernels.ir._llvm import emit_module
from verydeep.kernels.ir._memory import Memory
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.ir._transpose import transpose
from verydeep.kernels.ir._values import Int, Matrix, Ptr
from verydeep.kernels.ir._vector import Vec, load, store
from verydeep.kernels.runtime import _compile
from verydeep.kernels.runtime._compile import compile_kernels


@kernel
def scale(x: Matrix, y: Matrix, rows: Int, vectors: Int) -> None:
    """Double the rows of x, except for the first one."""
    with loop(rows) as i, loop(vectors) as n, when(i != 0):
        store(y.row(i) + n * LANES, load(x.row(i) + n * LANES) * 2.0)


def make_scale(factor: float) -> Kernel:
    @kernel(name="scale")
    def scaled(x: Ptr, y: Ptr) -> None:
        store(y, load(x) * factor)

    return scaled


def test_the_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    readme = Path(str(kernels.__file__)).with_name("README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    exec(compile(example, "example.py", "exec"), {})
    message = (
        f"weighted_sums (example.py:20) reads numbers {12 * LANES} to {13 * LANES - 1} of x, which has {12 * LANES}"
    )
    assert capsys.readouterr().out.strip() == message


def test_compiled_and_interpreted_kernels_do_the_same() -> None:
    assert scale.integers == 6
    x, y = np.arange(6 * LANES, dtype=np.float32).reshape(3, -1), np.zeros((3, 2 * LANES), np.float32)
    memory = Memory()
    x_at, y_at = memory.array("x", x), memory.array("y", y)
    interpret(scale, memory, x_at, x.strides[0], y_at, y.strides[0], 3, 2)
    (function,) = compile_kernels("scale", [scale])
    function(x.ctypes.data, x.strides[0], y.ctypes.data, y.strides[0], 3, 2)
    assert np.array_equal(memory.read("y").reshape(y.shape), y)
    assert np.array_equal(y, 2 * x * (np.arange(3) > 0)[:, None])


def test_arguments_have_the_types_of_the_signature() -> None:
    @kernel
    def wrong_type(x: Ptr, n: Int) -> None:
        transpose(x, x, n, n)

    @kernel
    def wrong_number(x: Matrix, n: Int) -> None:
        transpose(x, x, n)

    with pytest.raises(TypeError, match="a of transpose is a Ptr instead of a Matrix"):
        emit_module([wrong_type])
    with pytest.raises(TypeError, match="transpose takes 4 arguments, not 3"):
        emit_module([wrong_number])
    with pytest.raises(TypeError, match="transpose takes 6 integers, not 2"):
        interpret(transpose, Memory(), 1, 2)


def test_every_parameter_needs_a_type_of_the_language() -> None:
    with pytest.raises(TypeError, match="untyped: n must be annotated"):

        @kernel
        def untyped(x: Ptr, n) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
            pass

    with pytest.raises(TypeError, match="number: n must be annotated"):

        @kernel
        def number(n: int) -> None:
            pass


def test_what_is_known_only_when_a_kernel_runs_is_no_python_condition() -> None:
    @kernel
    def branch(n: Int) -> None:
        if n:
            pass

    @kernel
    def compare(n: Int) -> None:
        if n == 1:
            pass

    @kernel
    def compare_lanes(x: Ptr) -> None:
        if load(x) < 0.0:
            pass

    for one in (branch, compare, compare_lanes):
        with pytest.raises(TypeError, match="known only when the kernel runs"):
            emit_module([one])


def test_two_kernels_of_one_module_cannot_share_a_name() -> None:
    one, other = make_scale(2.0), make_scale(3.0)
    with pytest.raises(ValueError, match="two different kernels"):
        emit_module([one, other])

    @kernel
    def both(x: Ptr) -> None:
        one(x, x)
        other(x, x)

    memory = Memory()
    with pytest.raises(ValueError, match="two different kernels"):
        interpret(both, memory, memory.empty("x", LANES))


def test_operations_outside_of_kernels_are_refused() -> None:
    with pytest.raises(RuntimeError, match="inside a kernel"):
        Vec.zeros()


def test_kernels_from_elsewhere_are_cached_by_what_they_do() -> None:
    two, again, three = make_scale(2.0), make_scale(2.0), make_scale(3.0)
    assert _compile._cache_path("a", [two]) == _compile._cache_path("a", [again])
    assert _compile._cache_path("a", [two]) != _compile._cache_path("a", [three])
    assert _compile._cache_path("a", [transpose]).name == "a.o"  # its source is part of the folder's digest


def test_ir_and_assembly_can_be_written_to_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERYDEEP_DUMP_IR", str(tmp_path / "dump"))
    for _ in range(2):  # also what is cached
        compile_kernels("scale", [scale])
        written = {path.name: path.read_text() for path in (tmp_path / "dump").iterdir()}
        assert set(written) == {"scale.ll", "scale.s"}
        assert "define void @scale(" in written["scale.ll"]
        assert "scale:" in written["scale.s"]
        for path in (tmp_path / "dump").iterdir():
            path.unlink()


def test_a_folder_for_ir_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("VERYDEEP_DUMP_IR", str(tmp_path / "file"))
    with pytest.raises(UserError, match="file"):
        compile_kernels("scale", [scale])
