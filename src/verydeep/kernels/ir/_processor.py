"""The vector registers of this processor."""

import llvmlite.binding as llvm

_features = llvm.get_host_cpu_features()
LANES = 16 if _features.get("avx512f") else 8 if _features.get("avx") else 4  # float32 numbers per register
X86 = llvm.get_process_triple().startswith("x86_64")
BFLOAT16 = LANES == 16 and bool(_features.get("avx512bf16"))  # whether it multiplies pairs of bfloat16
REGISTERS = 16 if X86 and LANES < 16 else 32
NUMBER = 4  # bytes of a float32
INTEGER = 8  # bytes of an int64
