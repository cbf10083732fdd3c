"""Object code in, addresses out.  Never needs numba, and LLVM only where `common.compiler.image` cannot do it.

Kernels are compiled once per machine and then come from the disk cache, as images where that is possible, else as
object files for the one LLVM execution engine of the process.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from typing import Any

from common.compiler import image, llvm_library
from common.core.interrupts import heard_later
from common.core.locks import make_lock

_lock = make_lock()


NO_GATHERS = "+prefer-no-gather"
"""LLVM's feature of processors on which loads take less time than an instruction that gathers."""
_SLOW_GATHERS = frozenset((
    "skylake", "skylake-avx512", "cascadelake", "cooperlake", "cannonlake", "icelake-client", "icelake-server",
    "tigerlake", "rocketlake",
))  # fmt: skip
"""Those whose microcode keeps gathers from leaking data of others (INTEL-SA-00828): they take four times as long."""


@cache
def cpu() -> tuple[str, str]:
    """Return LLVM's name of the host CPU and its features; numba's environment variables override them."""
    name, features = llvm_library.host()
    features += f",{NO_GATHERS}" if name in _SLOW_GATHERS else ""
    chosen = os.environ.get("NUMBA_CPU_FEATURES")
    return os.environ.get("NUMBA_CPU_NAME") or name, features if chosen is None else chosen


@cache
def target_machine() -> llvm_library.LlvmMachine:
    """Return the LLVM target machine for the host, with the relocation and code model that MCJIT needs."""
    return llvm_library.LlvmMachine(llvm_library.process_triple(), *cpu(), here=True)


@cache
def _engine() -> Any:
    from llvmlite import binding

    target, (name, features) = binding.Target.from_triple(llvm_library.process_triple()), cpu()
    reloc = "static" if target.name.startswith("x86") else "default"
    machine = target.create_target_machine(name, features, reloc=reloc, codemodel="jitdefault", jit=True)
    made = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    image.outlive(made)
    return made


_symbols: dict[str, Callable[[], int]] = {}
_homes: list[str] = []
_families: dict[str, Callable[[str], int]] = {}

IN_ORDER = '"in-order"'
"""The attribute of a kernel whose instructions LLVM leaves in their order, see `emit`."""

PIPELINE, TIDYING, NOTHING = range(3)
"""What is left to do to a module before code is generated: `optimise`, `tidy`, or neither."""

# Calls that LLVM makes of loops, and of what the processor has no instruction for; these are exact in every libm
_EXACT = ("floor", "ceil", "trunc", "rint", "fma")
_IN_PROCESS = frozenset(("memcpy", "memmove", "memset", *(f"{name}{f}" for name in _EXACT for f in ("", "f"))))
_defined = set(_IN_PROCESS)


def define(symbol: str, address: Callable[[], int]) -> None:
    """Name an address for object code; ``address()`` is asked when a kernel needs it for the first time."""
    _symbols[symbol] = address


def define_in(module: str) -> None:
    """Name a module that defines symbols when it is imported; that is done when a kernel needs one that is missing."""
    _homes.append(module)


def define_family(prefix: str, address_of: Callable[[str], int]) -> None:
    """Name addresses for object code by symbols ``prefix.rest``, of which `address_of` gives the address."""
    _families[prefix] = address_of


def _provider(symbol: str) -> Callable[[], int]:
    family = _families.get(symbol.partition(".")[0])
    if family is not None:
        return partial(family, symbol)
    if symbol not in _symbols:
        for module in _homes:
            import_module(module)
    if symbol not in _symbols:
        from common.core.errors import CompileError

        raise CompileError(f"a kernel needs the symbol {symbol!r}, which nothing provides")
    return _symbols[symbol]


def _require(symbol: str) -> None:
    from llvmlite import binding

    if symbol not in _defined:
        binding.add_symbol(symbol, _provider(symbol)())
        _defined.add(symbol)


def _address_of(symbol: str) -> int:
    """The address of a symbol that an image uses."""
    if symbol in _IN_PROCESS:
        return int(ctypes.cast(getattr(ctypes.CDLL(None), symbol), ctypes.c_void_p).value or 0)
    return _provider(symbol)()


def load(object_code: bytes, symbol: str, externals: Iterable[str] = ()) -> int:
    """Load one object file or image and return the address of its function `symbol`.

    Raises
    ------
    CompileError
        One of `externals` has not been named with `define` (LLVM would end the process).
    """
    with _lock:
        if object_code.startswith(image.MAGIC):
            return image.load(object_code, _address_of)
        from llvmlite import binding

        for external in externals:
            _require(external)
        engine = _engine()
        with heard_later():
            engine.add_object_file(binding.ObjectFileRef.from_data(object_code))
            engine.finalize_object()
            return int(engine.get_function_address(symbol))


def emit(module: llvm_library.LlvmModule, symbol: str, few_passes: bool = False) -> bytes:
    """Return the code of an optimised LLVM module with the function `symbol`, as `load` takes it.

    With `few_passes` that takes half of the time, for loops that run as fast; products lose up to a twentieth. Kernels
    with `IN_ORDER` have them always.
    """
    with _lock:
        _switch(few_passes or module.in_order)
        try:
            if "+fma" not in target_machine().features.split(","):
                from common.compiler.software_fma import spell_out

                spell_out(module, target_machine())
            code = target_machine().emit_object(module)
        finally:
            if not _batches:
                _switch(few=False)
    return image.link(code, symbol) or code


_LEFT_OUT = {
    "-disable-lsr=true": "-disable-lsr=false",
    "-enable-misched=false": "-enable-misched=true",
    "-disable-post-ra=true": "-disable-post-ra=false",
    **{
        f"-disable-{name}=true": f"-disable-{name}=false"
        for name in (
            "cgp", "constant-hoisting", "early-taildup", "mergeicmps", "partial-libcall-inlining",
            "postra-machine-sink", "tail-duplicate",
        )
    },
}  # fmt: skip
"""Passes of code generation that take half of its time, and how they come back: LLVM's switches are the process's.

The first three change the code; without the others it is the same, byte by byte, and there 7 % earlier.
"""


_batches: list[None] = []
_switched: list[None] = []


@contextmanager
def batch() -> Iterator[None]:
    """Kernels that are emitted in this block throw LLVM's switches once, which takes 0.2 ms, and not for each."""
    _batches.append(None)
    try:
        yield
    finally:
        with _lock:
            _batches.pop()
            if not _batches:
                _switch(few=False)


def is_batch() -> bool:
    """Whether this is a block of `batch`."""
    return bool(_batches)


def _switch(few: bool) -> None:
    """Leave out the choice of new induction variables, and orders of instructions, which processors find themselves;
    and what finds nothing to do; or nothing of it.
    """
    if few is not bool(_switched):
        for switch in _LEFT_OUT if few else _LEFT_OUT.values():
            llvm_library.set_option(switch)
        _switched[:] = [None] * few


def parse(text: str) -> llvm_library.LlvmModule:
    """Return LLVM IR text as a verified module for this machine."""
    module = llvm_library.LlvmModule(text)
    module.in_order = IN_ORDER in text
    module.place(target_machine())
    module.verify()
    return module


def optimise(module: llvm_library.LlvmModule) -> None:
    """Run LLVM's pipeline of level 1 on `module` in place, and make vectors of its loops.

    It keeps bits, because no fast-math flag is ever set. Level 3 and unrolled loops take 1.7x the time, for kernels
    that run as fast.
    """
    from common.compiler.rare_branches import PREFIX

    target_machine().run(module, vectorise=True)
    if any(function.name.startswith(PREFIX) for function in module.functions):
        target_machine().run(module, ["AlwaysInliner"])  # variants that vectorisation left as calls


def tidy(module: llvm_library.LlvmModule) -> None:
    """Do in place what code generation does not do, to a module whose loops are vectors already or gain nothing.

    A tenth of the time of `optimise`. Nothing that it leaves out costs calls or kernels a measurable time
    (`benchmarks/gates/test_call.py`, `benchmarks/gates/test_rows.py`).
    """
    target_machine().run(module, ["AlwaysInliner", "GlobalDCE", "SROA", "InstCombine", "SimplifyCFG"])
