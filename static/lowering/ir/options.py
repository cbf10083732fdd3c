"""How programs are compiled; no option changes a bit."""

from __future__ import annotations

from typing import NamedTuple


class Options(NamedTuple):
    """What a user decides about compiling.

    Attributes
    ----------
    fuse : whether nodes share kernels.
    compiler : of kernel text, "llvm" or "numba"; None for that of the process, see `common.compiler.compile`.
    """

    fuse: bool = True
    compiler: str | None = None
