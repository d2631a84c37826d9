"""From kernels to functions: compiled once per processor, and cached if the cache folder is writable."""

import ctypes
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from verydeep.errors import UserError
from verydeep.files import user_cache, write_atomic
from verydeep.kernels.ir._ir import LANES, Kernel, Value

_DIGEST = 32  # bytes of a checksum
_lock = Lock()  # LLVM's state is global to the process
_engines: list[Value] = []  # they own the compiled code


class Function:
    """A compiled kernel: a function of integers (sizes and addresses) that runs without Python's lock."""

    def __init__(self, address: int, arguments: int) -> None:
        assert address
        self.address = address
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(address)

    def __call__(self, *arguments: int) -> None:
        self._call(*arguments)


def compile_kernels(name: str, kernels: Sequence[Kernel]) -> list[Function]:
    """Compile kernels, or load them from the cache.

    Args:
        name: A name for these kernels together; with the sources and the processor it identifies cached code.
        kernels: The kernels to compile.
    """
    with _lock:
        machine = _machine()
        path = _folder() / f"{name}.o"
        code = _read(path)
        if code is None:
            code = _compile(kernels, machine)
            _write(path, code)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _engines.append(engine)
        return [Function(engine.get_function_address(kernel.name), kernel.arguments) for kernel in kernels]


def _compile(kernels: Sequence[Kernel], machine: Value) -> bytes:
    """Object code for this processor."""
    module = ir.Module()
    for kernel in kernels:
        kernel.define(module)
    public = {kernel.name for kernel in kernels}
    for function in module.functions:
        if not function.is_declaration and function.name not in public:
            function.linkage = "internal"
    parsed = llvm.parse_assembly(str(module))
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(parsed, passes)
    return machine.emit_object(parsed)  # type: ignore[no-any-return]


def _machine() -> Value:
    """LLVM's description of this processor; every engine owns its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )


def _read(path: Path) -> bytes | None:
    """Cached code; None if there is none or its checksum is wrong."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code, digest = content[:-_DIGEST], content[-_DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> None:
    """Cache the code for the next process; if nothing can be written, that process compiles again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, code + hashlib.sha256(code).digest())
    except (OSError, UserError):
        return


@cache
def _folder() -> Path:
    """The cache folder, named after a digest of the kernels' sources, the processor and the compiler."""
    digest = hashlib.sha256(f"{llvmlite.__version__} {llvm.get_host_cpu_name()} {LANES}".encode())
    digest.update(llvm.get_host_cpu_features().flatten().encode())
    for source in sorted(Path(__file__).parents[1].rglob("*.py")):  # all of verydeep.kernels
        digest.update(source.read_bytes())
    return user_cache() / "kernels" / digest.hexdigest()[:16]
