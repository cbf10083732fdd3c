"""Rows that pivoting has exchanged, without Python: native source as that of `common.kernels.linalg.small_systems`."""

from __future__ import annotations

from common.compiler.host_kernels import HostKernel

__all__ = ["MOST", "permutation"]

MOST = 1 << 30
"""Most pivots of a matrix."""

_PERMUTATION = """
{python} = C

def {name}(status, scratch, bufs, ints):
    count = ints[{last}]
    rows = ints[{rows}]
    batch = 1
    for d in range({last}):
        batch *= ints[d]
    for s in range(batch):
        pivots = bufs[0] + s * count * 4
        found = bufs[1] + s * rows * 8
        for i in range(rows):
            found[i] = i
        for j in range(count):
            k = to_int64(int32s(pivots)[j]) - 1
            if j >= rows or k < 0 or k >= rows:
                return invoke({python}, status, scratch, bufs, ints)
            row = found[j]
            found[j] = found[k]
            found[k] = row
    status[0] = 0
    return 0
"""


def permutation(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.permutation`; pivots that are no rows are left to Python."""
    dims = kernel.buffers[0][1]
    return _PERMUTATION.format(python=python, name=kernel.name, last=dims - 1, rows=2 * dims - 1)
