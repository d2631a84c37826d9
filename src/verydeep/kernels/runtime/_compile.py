"""From kernels to functions: compiled once per processor, and cached if the cache folder is writable.

Cached code runs in this process, so only files that nobody else could have written are read.

With the environment variable VERYDEEP_DUMP_IR=FOLDER, kernels are compiled anew, and what LLVM makes of them is written
to the folder: optimised IR (`.ll`) and assembly (`.s`).
"""

import ctypes
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock

import llvmlite
import llvmlite.binding as llvm

from verydeep.errors import UserError
from verydeep.files import user_cache, write_atomic
from verydeep.kernels.ir._kernel import Kernel
from verydeep.kernels.ir._llvm import IRValue, emit_module
from verydeep.kernels.ir._processor import LANES
from verydeep.kernels.runtime._private_files import read_private, write_private

_SOURCES = Path(__file__).parents[1]  # verydeep.kernels
_DIGEST = 32  # bytes of a checksum
_lock = Lock()  # LLVM's state is global to the process
_engines: list[IRValue] = []  # they own the compiled code


class Function:
    """A compiled kernel: a function of int64 that runs without Python's lock.

    The arguments are sizes and addresses, and for a Matrix its address and its row stride in bytes.
    """

    def __init__(self, kernel: Kernel, address: int) -> None:
        assert address
        self.kernel, self.address = kernel, address
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * kernel.integers)(address)

    def __call__(self, *arguments: int) -> None:
        self._call(*arguments)


def compile_kernels(name: str, kernels: Sequence[Kernel]) -> list[Function]:
    """Compile kernels, or load them from the cache.

    Args:
        name: A name for these kernels together. For kernels of this package it must tell members of a family apart:
            with the package's sources and the processor it identifies cached code.
        kernels: The kernels to compile.
    """
    with _lock:
        machine = _machine()
        path, dump = _cache_path(name, kernels), os.environ.get("VERYDEEP_DUMP_IR")
        code = None if dump else _read(path)
        if code is None:
            code = _compile(kernels, machine, Path(dump, name) if dump else None)
            _write(path, code)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _engines.append(engine)
        return [Function(kernel, engine.get_function_address(kernel.name)) for kernel in kernels]


def _compile(kernels: Sequence[Kernel], machine: IRValue, dump: Path | None = None) -> bytes:
    """Object code for this processor; IR and assembly are written to `dump` with their suffixes."""
    module = llvm.parse_assembly(str(emit_module(kernels)))
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    if dump is not None:
        write_atomic(dump.with_name(f"{dump.name}.ll"), str(module))
        write_atomic(dump.with_name(f"{dump.name}.s"), machine.emit_assembly(module))
    return machine.emit_object(module)  # type: ignore[no-any-return]


def _machine() -> IRValue:
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
    """Cached code; None if there is none, its checksum is wrong, or someone else could have written it."""
    content = read_private(path)
    if content is None:
        return None
    code, digest = content[:-_DIGEST], content[-_DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> None:
    """Cache the code for the next process; if nothing can be written, that process compiles again."""
    try:
        write_private(path, code + hashlib.sha256(code).digest())
    except (OSError, UserError):
        return


def _cache_path(name: str, kernels: Sequence[Kernel]) -> Path:
    """The file in the cache; for kernels from elsewhere, whose sources are not in the folder's digest, by their IR."""
    if all(Path(kernel.function.__code__.co_filename).is_relative_to(_SOURCES) for kernel in kernels):
        return _folder() / f"{name}.o"
    return _folder() / f"{name}-{hashlib.sha256(str(emit_module(kernels)).encode()).hexdigest()[:16]}.o"


@cache
def _folder() -> Path:
    """The cache folder, named after a digest of the kernels' sources, the processor and the compiler."""
    digest = hashlib.sha256(f"{llvmlite.__version__} {llvm.get_host_cpu_name()} {LANES}".encode())
    digest.update(llvm.get_host_cpu_features().flatten().encode())
    for source in sorted(_SOURCES.rglob("*.py")):
        digest.update(source.read_bytes())
    return user_cache() / "kernels" / digest.hexdigest()[:16]
