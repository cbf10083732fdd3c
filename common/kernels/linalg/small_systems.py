"""Small matrices without Python: native source that eliminates eight at once, or calls a routine of LAPACK.

Python takes 6 to 10 us for a call, LAPACK less than 1 for a few unknowns. What `common.kernels.linalg.elimination`
and `symmetric` define is computed here. For singular values and QR, a matrix is copied as is done in
`common.kernels.linalg.lapack`, by columns and in float64: so the routine that numpy calls sees the same numbers, and
gives the same bits. What is large or empty is left to Python, and what is singular where somebody is to be told.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from common.compiler import llvm_engine
from common.compiler.host_kernels import HostKernel
from common.kernels.linalg import elimination_code, lapack, symmetric_code
from common.kernels.linalg import small_system_texts as texts
from common.kernels.linalg.elimination import SMALL as MOST
from common.kernels.linalg.lane_code import LANES

_NAMES = "scipy_{}_64_", "{}_64_", "scipy_{}_", "{}_"
"""How numpy's LAPACK may name a routine. In words of 64 bits a size is right for ints of 32 bits too."""

@cache
def routine(name: str) -> int:
    """The address of a routine in the LAPACK that numpy calls; 0 if it cannot be told."""
    try:
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
    except (AttributeError, OSError):
        return 0
    for known in _NAMES:
        found = getattr(library, known.format(name), None)
        if found is not None:
            return ctypes.cast(found, ctypes.c_void_p).value or 0
    return 0


def _source(kernel: HostKernel, python: str, body: str, names: Sequence[str], count: str = "1", **more: Any) -> str:
    """The text of a kernel with one matrix of n rows, and `count` right sides, per item of a batch.

    Parameters
    ----------
    python : the name of the kernel in Python, to which the rest is left.
    names : of the functions that are called.
    """
    dtype, dims = kernel.buffers[0]
    return (texts.HEAD + body + texts.END).format(
        python=python, name=kernel.name, names=", ".join([*names, python]), most=MOST, words=LANES * MOST * MOST,
        found=5 * LANES * MOST, rows=dims - 1, count=count, batch=dims - 2, itemsize=dtype.itemsize,
        dtype=dtype.name, elements=f"{dtype.name}s", **more,
    )  # fmt: skip


def _eliminating(kernel: HostKernel, python: str, body: str, count: str = "1", **more: Any) -> str:
    return _source(kernel, python, texts.ELIMINATION + body, elimination_code.FUNCTIONS.define(), count, **more)


def _sides(kernel: HostKernel) -> str:
    return f"ints[{2 * kernel.buffers[0][1] - 1}]"


def solve(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.solve`."""
    return _eliminating(kernel, python, texts.SOLVE, _sides(kernel))


def inv(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.inv`."""
    return _eliminating(kernel, python, texts.INVERSE + texts.INV)


def cofactors(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.cofactors`, where the inverse has all its digits."""
    return _eliminating(kernel, python, texts.INVERSE + texts.COFACTORS, spread=lapack.SPREAD, root=lapack.ROOT)


def det(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.det`."""
    return _eliminating(kernel, python, texts.DET)


def slogdet(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.slogdet`."""
    return _eliminating(kernel, python, texts.SLOGDET)


def lu(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.lu`, for square matrices."""
    return _eliminating(kernel, python, texts.LU, _one_if_square(kernel), told=int(bool(kernel.words[0])))


def cholesky(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.cholesky`."""
    return _eliminating(kernel, python, texts.CHOLESKY, told=int(bool(kernel.words[0])))


def solve_triangular(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.solve_triangular`."""
    upper, unitriangular = map(int, kernel.words)
    return _eliminating(kernel, python, texts.TRIANGULAR, _sides(kernel), upper=upper, unitriangular=unitriangular)


def _by_lapack(kernel: HostKernel, python: str, body: str, *names: str, count: str = "1", **more: Any) -> str:
    """The text of a kernel that calls routines of numpy's LAPACK; empty where one is not found."""
    addresses = {name: routine(name) for name in names}
    for name, address in addresses.items():
        llvm_engine.define(f"twingrad_{name}", partial(int, address))
    return _source(kernel, python, texts.LAPACK + body, names, count, **more) if all(addresses.values()) else ""


def eigh(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.eigh`."""
    return _eigenvalues(kernel, python, texts.EIGENVALUES + texts.EIGENVECTORS, 1)


def eigvalsh(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.eigvalsh`."""
    return _eigenvalues(kernel, python, texts.EIGENVALUES, 0)


def _eigenvalues(kernel: HostKernel, python: str, body: str, vectors: int) -> str:
    names, upper = symmetric_code.FUNCTIONS.define(), int(kernel.words[0] == "U")
    return _source(kernel, python, texts.ELIMINATION + body, names, upper=upper, vectors=vectors)


def svdvals(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.svdvals`, for square matrices."""
    body = texts.FINITE + texts.SINGULAR_VALUES + texts.VALUES
    return _by_lapack(kernel, python, body, "dgesdd", count=_one_if_square(kernel), work=700)


def qr(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.qr`, for square matrices."""
    return _by_lapack(kernel, python, texts.QR, "dgeqrf", "dorgqr", count=_one_if_square(kernel))


def _one_if_square(kernel: HostKernel) -> str:
    """A count of right sides that is none where there are not as many rows as columns."""
    rows = f"ints[{kernel.buffers[0][1] - 2}]"
    return f"1 - (n - {rows}) * (n - {rows})"


__all__ = [
    "MOST", "cholesky", "cofactors", "det", "eigh", "eigvalsh", "inv", "lu", "qr", "routine", "slogdet", "solve",
    "solve_triangular", "svdvals",
]  # fmt: skip
