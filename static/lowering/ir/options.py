"""How programs are compiled; no option changes a bit."""

from __future__ import annotations

from typing import NamedTuple


class CompileOptions(NamedTuple):
    """A user's options of compiling.

    Attributes
    ----------
    fuse : whether nodes share kernels.
    compiler : of kernel text, "llvm" or "numba"; None for that of the process, see `common.compiler.compile`.
    share_memory : whether temporaries and results that do not live at the same time may lie in the same memory.
    """

    fuse: bool = True
    compiler: str | None = None
    share_memory: bool = True
