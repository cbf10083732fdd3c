"""Flush to zero: a mode of the processor in which arithmetic takes and gives zero instead of subnormal numbers."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from functools import cache

from common.compiler.compile import load_ir
from common.core import mode
from common.core.numerics import flushes
from common.runtime import thread_pool

__all__ = ["set_flush_denormal"]

_SYMBOL = "twingrad_flush_to_zero"
#: Sets the bits of the mode, or clears them.
_X86 = f"""
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define void @{_SYMBOL}(i32 %wanted) {{
  %word = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %word)
  %found = load i32, ptr %word
  %without = and i32 %found, -32833
  %bits = mul i32 %wanted, 32832
  %new = or i32 %without, %bits
  store i32 %new, ptr %word
  call void @llvm.x86.sse.ldmxcsr(ptr %word)
  ret void
}}
"""
_ARM = f"""
define void @{_SYMBOL}(i64 %wanted) {{
  %found = call i64 asm sideeffect "mrs $0, fpcr", "=r"()
  %without = and i64 %found, -16777217
  %bits = mul i64 %wanted, 16777216
  %new = or i64 %without, %bits
  call void asm sideeffect "msr fpcr, $0", "r"(i64 %new)
  ret void
}}
"""
_TEXTS = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}


def set_flush_denormal(on: bool, /) -> bool:
    """Let arithmetic flush subnormal numbers to zero, or stop it; return whether that is so now.

    Results below the smallest normal number (1.2e-38 in float32, 2.2e-308 in float64) become zero, and operands count
    as zero. Arithmetic with subnormal numbers takes up to ten times as long, by processor: decays, long products and
    gradients of saturated functions meet them. The mode belongs to the calling thread and to the threads that it starts
    later. Both engines compute in it with the same bits, if no argument and no constant of a program is subnormal;
    compiled functions are traced again.

    Parameters
    ----------
    on : bool

    Returns
    -------
    bool
        False where the processor has no such mode, and while `set_num_threads` lets other threads compute, which keep
        the mode that they were started in: then nothing has changed.

    Examples
    --------
    >>> import dynamic as tw
    >>> small = tw.tensor(1e-30)
    >>> tw.set_flush_denormal(True)
    True
    >>> (small * 1e-10).item()
    0.0
    >>> tw.set_flush_denormal(False)
    True
    >>> (small * 1e-10).item() > 0
    True
    """
    if bool(on) == flushes():
        return True
    switch = _switch()
    if switch is None or thread_pool.get_num_threads() > 1:
        return False
    switch(int(bool(on)))
    mode.note_change()
    return flushes() == bool(on)


@cache
def _switch() -> Callable[[int], None] | None:
    text = _TEXTS.get(platform.machine().lower())
    return None if text is None else ctypes.CFUNCTYPE(None, ctypes.c_int64)(load_ir(text, _SYMBOL))
