"""Kernels as object code for the processors that a C library may run on, and the C that chooses among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from common.compiler import compile as kernels
from common.compiler import llvm_engine, llvm_library, software_fma
from common.compiler.machine_functions import PREFIX

WAYS = "portable", "native", "baseline", "arm64"
ARM64 = "aarch64-unknown-linux-gnu"
LEVELS = {"_v2": "x86-64-v2", "_v3": "x86-64-v3", "_v4": "x86-64-v4"}
"""Suffixes of kernels, and the processors that they are for."""

CHOOSER = """
#include <cpuid.h>

/* The kinds of code by number: x86-64-v2, -v3, -v4. TWINGRAD_TARGET names one that is not to be exceeded. */
static int best(void) {
    unsigned a, b, c, d;
    int found = 2;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512cd")
        || !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) found = 1;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2")
        || !__builtin_cpu_supports("fma")) found = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_MOVBE) || !(c & bit_F16C)) found = 0;
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & (1u << 5))) found = 0; /* lzcnt */
    const char *limit = getenv("TWINGRAD_TARGET");
    if (limit && !strcmp(limit, "x86-64-v2")) return 0;
    if (limit && !strcmp(limit, "x86-64-v3") && found > 1) return 1;
    return found;
}
__attribute__((constructor)) static void choose(void) { kernels = kinds[kind = best()]; }
"""
"""C that lets `kernels` point to the best of the `kinds` when the library is loaded."""


class KernelTarget(NamedTuple):
    """A kind of code.

    Attributes
    ----------
    suffix : of its functions' names.
    name : of the processors.
    machine : of LLVM.
    """

    suffix: str
    name: str
    machine: llvm_library.LlvmMachine


def targets_of(cpu: str) -> list[KernelTarget]:
    """The kinds of code that a library has, the most modest first; `cpu` is one of `WAYS`."""
    if cpu == "arm64":
        llvm_library.initialise_all()
    triple = ARM64 if cpu == "arm64" else llvm_library.process_triple()
    made = {"_own": llvm_engine.cpu()}
    if triple.startswith("x86_64") and cpu != "native":
        made = {suffix: (name, "") for suffix, name in LEVELS.items() if cpu == "portable" or suffix == "_v2"}
    elif cpu in ("baseline", "arm64"):
        made = {"_own": ("", "")}
    return [
        KernelTarget(suffix, name or "generic", llvm_library.LlvmMachine(triple, name, features, here=False))
        for suffix, (name, features) in made.items()
    ]


def objects_of(sources: Sequence[tuple[str, str]], target: KernelTarget) -> list[bytes]:
    """Object code of kernels, and of what they call."""
    codes, needed = [], dict[str, None]()
    for number, (source, name) in enumerate(sources):
        module, left = kernels.front_end(source, name, f"twingrad_kernel{number}{target.suffix}")
        codes.append(_emitted(module, target, left != llvm_engine.PIPELINE, needed))
    done: set[str] = set()
    while waiting := [symbol for symbol in needed if symbol not in done and symbol.startswith(PREFIX)]:
        for symbol in waiting:
            module = llvm_engine.parse(kernels.library_text(symbol))
            codes.append(_emitted(module, target, True, needed))
            done.add(symbol)
    return codes


def _emitted(module: llvm_library.LlvmModule, target: KernelTarget, complete: bool, needed: dict[str, None]) -> bytes:
    (llvm_engine.tidy if complete else llvm_engine.optimise)(module)
    module.place(target.machine)
    needed.update(dict.fromkeys(kernels.externals(module)))
    for function in (*module.functions, *module.global_variables):
        if function.name.startswith("twingrad") and not function.is_internal:
            function.hide()
        if function.name.startswith(PREFIX):
            function.name += target.suffix
    software_fma.spell_out(module, target.machine)
    return target.machine.emit_object(module)
