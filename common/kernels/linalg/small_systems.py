"""Small systems of equations without Python: native source that calls the routine of LAPACK that numpy's `solve` calls.

Python takes 10 us for a call, LAPACK less than 1 for a few unknowns. The matrices of a batch are copied by columns and
in float64, as numpy does it, so the routine sees the same numbers and gives the same bits. What is singular, large or
empty is left to Python.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from common.compiler import llvm_engine
from common.compiler.host_kernels import HostKernel

MOST = 32
"""Unknowns, and right sides, of what is called small: both matrices lie on the stack."""

_NAMES = "scipy_dgesv_64_", "dgesv_64_", "scipy_dgesv_", "dgesv_"
"""How numpy's LAPACK may name the routine. In words of 64 bits a size is right for ints of 32 bits too."""

_SOURCE = """
dgesv, {python} = C

def solve(status, scratch, bufs, ints):
    matrix = room({words})
    sides = room({words})
    pivots = room({most})
    sizes = room(3)
    n = ints[{rows}]
    count = ints[{columns}]
    if n < 1 or n > {most} or count < 1 or count > {most}:
        return invoke({python}, status, scratch, bufs, ints)
    sizes[0] = n
    sizes[1] = count
    batch = 1
    for d in range({batch}):
        batch *= ints[d]
    for s in range(batch):
        a = bufs[0] + s * n * n * {itemsize}
        b = bufs[1] + s * n * count * {itemsize}
        for i in range(n):
            for j in range(n):
                float64s(matrix)[j * n + i] = to_float64({elements}(a)[i * n + j])
            for j in range(count):
                float64s(sides)[j * n + i] = to_float64({elements}(b)[i * count + j])
        sizes[2] = 0
        dgesv(sizes, sizes + 8, matrix, sizes, pivots, sides, sizes, sizes + 16)
        if sizes[2] != 0:
            return invoke({python}, status, scratch, bufs, ints)
        x = bufs[2] + s * n * count * {itemsize}
        for i in range(n):
            for j in range(count):
                {elements}(x)[i * count + j] = to_{dtype}(float64s(sides)[j * n + i])
        int32s(bufs[3])[s] = to_int32(0)
    status[0] = 0
    return 0
"""


@cache
def routine() -> int:
    """The address of gesv of float64 in the LAPACK that numpy calls; 0 if it cannot be told."""
    try:
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
    except (AttributeError, OSError):
        return 0
    found = (getattr(library, name, None) for name in _NAMES)
    return next((ctypes.cast(one, ctypes.c_void_p).value or 0 for one in found if one is not None), 0)


def solve(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.solve`; empty where the routine is not found.

    Parameters
    ----------
    python : the name of the kernel in Python, to which the rest is left.
    """
    dtype, dims = kernel.buffers[0]
    if not routine():
        return ""
    llvm_engine.define("twingrad_dgesv", routine)
    return _SOURCE.format(
        python=python, most=MOST, words=MOST * MOST, rows=dims - 1, columns=2 * dims - 1, batch=dims - 2,
        itemsize=dtype.itemsize, dtype=dtype.name, elements=f"{dtype.name}s",
    )  # fmt: skip


__all__ = ["MOST", "routine", "solve"]
