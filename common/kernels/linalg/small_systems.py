"""Small matrices without Python: native source that calls the routine of LAPACK that numpy or SciPy calls.

Python takes 6 to 10 us for a call, LAPACK less than 1 for a few unknowns. The matrices of a batch are copied as they
are for `common.kernels.linalg.lapack`, by columns and for numpy in float64: so the routine sees the same numbers, and
gives the same bits. What is singular, large or empty is left to Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from common.compiler import llvm_engine
from common.compiler.compile import load_ir
from common.compiler.host_kernels import HostKernel
from common.kernels.linalg import lapack

MOST = 32
"""Most unknowns, and right sides, of a small system: both matrices lie on the stack."""

_NAMES = "scipy_{}_64_", "{}_64_", "scipy_{}_", "{}_"
"""How numpy's LAPACK may name a routine. In words of 64 bits a size is right for ints of 32 bits too."""

_HEAD = """
{routines}, {python} = C

def {name}(status, scratch, bufs, ints):
    matrix = room({words})
    sides = room({words})
    pivots = room({most})
    sizes = room(6)
    n = ints[{rows}]
    count = {count}
    if n < 1 or n > {least} or count < 1 or count > {most}:
        return invoke({python}, status, scratch, bufs, ints)
    sizes[0] = n
    sizes[1] = count
    batch = 1
    for d in range({batch}):
        batch *= ints[d]
    for s in range(batch):
        a = bufs[0] + s * n * n * {itemsize}
        for i in range(n):
            for j in range(n):
                {wide}s(matrix)[j * n + i] = to_{wide}({elements}(a)[i * n + j])
        sizes[2] = 0
"""

_SOLVE = """
        b = bufs[1] + s * n * count * {itemsize}
        for i in range(n):
            for j in range(count):
                float64s(sides)[j * n + i] = to_float64({elements}(b)[i * count + j])
        dgesv(sizes, sizes + 8, matrix, sizes, pivots, sides, sizes, sizes + 16)
        if sizes[2] != 0:
            return invoke({python}, status, scratch, bufs, ints)
        x = bufs[2] + s * n * count * {itemsize}
        for i in range(n):
            for j in range(count):
                {elements}(x)[i * count + j] = to_{dtype}(float64s(sides)[j * n + i])
        int32s(bufs[3])[s] = to_int32(0)
"""

_INVERSE = """
        for i in range(n):
            for j in range(n):
                float64s(sides)[j * n + i] = to_float64(0)
            float64s(sides)[i * n + i] = to_float64(1)
        dgesv(sizes, sizes + 8, matrix, sizes, pivots, sides, sizes, sizes + 16)
        if sizes[2] != 0:
            return invoke({python}, status, scratch, bufs, ints)
"""

_INV = """
        x = bufs[1] + s * n * n * {itemsize}
        for i in range(n):
            for j in range(n):
                {elements}(x)[i * n + j] = to_{dtype}(float64s(sides)[j * n + i])
        int32s(bufs[2])[s] = to_int32(0)
"""

_COFACTORS = """
        largest = to_float64(0)
        most = to_float64(0)
        for i in range(n * n):
            size = abs(to_float64({elements}(a)[i]))
            if size > largest:
                largest = size
            size = abs(float64s(sides)[i])
            if size > most:
                most = size
        float64s(matrix)[0] = total
        twingrad_exp(matrix)
        size = float64s(matrix)[0]
        bound = to_float64({root})
        for i in range(3):
            bound = bound * bound
        if not (largest * most <= to_float64({spread}) and size * bound >= to_float64(1) and size * most <= bound):
            return invoke({python}, status, scratch, bufs, ints)
        det = sign * size
        x = bufs[1] + s * n * n * {itemsize}
        for i in range(n * n):
            {elements}(x)[i] = to_{dtype}(det * float64s(sides)[i])
"""
"""The inverse lies by columns, so in this order it is transposed."""

_FINITE = """
        for i in range(n * n):
            if float64s(matrix)[i] - float64s(matrix)[i] != to_float64(0):
                return invoke({python}, status, scratch, bufs, ints)
        sizes[3] = 78
        sizes[5] = {work}
        values = sides + {work} * 8
"""
"""78 is the letter N: no vectors."""

_EIGENVALUES = """
        sizes[4] = {triangle}
        dsyevd(sizes + 24, sizes + 32, sizes, matrix, sizes, values, sides, sizes + 40, pivots, sizes + 8, sizes + 16)
"""

_SINGULAR_VALUES = """
        of = sizes + 8
        whole = values + {most} * 8
        info = sizes + 16
        dgesdd(sizes + 24, sizes, sizes, matrix, sizes, values, sides, of, sides, of, sides, sizes + 40, whole, info)
"""

_VALUES = """
        if sizes[2] != 0:
            return invoke({python}, status, scratch, bufs, ints)
        for i in range(n):
            {elements}(bufs[1] + s * n * {itemsize})[i] = to_{dtype}(float64s(values)[i])
"""

_CHOLESKY = """
        sizes[3] = 76
        dpotrf(sizes + 24, sizes, matrix, sizes, sizes + 16)
        if sizes[2] != 0:
            return invoke({python}, status, scratch, bufs, ints)
        x = bufs[1] + s * n * n * {itemsize}
        for i in range(n):
            for j in range(n):
                {elements}(x)[i * n + j] = to_{dtype}(0)
            for j in range(i + 1):
                {elements}(x)[i * n + j] = to_{dtype}(float64s(matrix)[j * n + i])
        int32s(bufs[2])[s] = to_int32(0)
"""
"""76 is the letter L: the lower triangle."""

_QR = """
        sizes[3] = n * {most}
        dgeqrf(sizes, sizes, matrix, sizes, pivots, sides, sizes + 24, sizes + 16)
        x = bufs[2] + s * n * n * {itemsize}
        for i in range(n):
            for j in range(n):
                value = float64s(matrix)[j * n + i] if j >= i else to_float64(0)
                {elements}(x)[i * n + j] = to_{dtype}(value)
        dorgqr(sizes, sizes, sizes, matrix, sizes, pivots, sides, sizes + 24, sizes + 16)
        x = bufs[1] + s * n * n * {itemsize}
        for i in range(n):
            for j in range(n):
                {elements}(x)[i * n + j] = to_{dtype}(float64s(matrix)[j * n + i])
"""

_FACTORS = """
        dgetrf(sizes, sizes, matrix, sizes, pivots, sizes + 16)
        if sizes[2] != 0:
            return invoke({python}, status, scratch, bufs, ints)
"""

_DIAGONAL = """
        sign = to_float64(1)
        for i in range(n):
            if {pivots}(pivots)[i] != i + 1:
                sign = to_float64(0) - sign
        total = to_float64(0)
        for i in range(n):
            place = matrix + (i * n + i) * 8
            if float64s(place)[0] < to_float64(0):
                sign = to_float64(0) - sign
                float64s(place)[0] = to_float64(0) - float64s(place)[0]
            twingrad_log(place)
            total = total + float64s(place)[0]
"""

_SLOGDET = """
        {elements}(bufs[1])[s] = to_{dtype}(sign)
        {elements}(bufs[2])[s] = to_{dtype}(total)
"""

_DET = """
        float64s(matrix)[0] = total
        twingrad_exp(matrix)
        {elements}(bufs[1])[s] = to_{dtype}(sign * float64s(matrix)[0])
"""

_TRIANGULAR = """
        b = bufs[1] + s * n * count * {itemsize}
        x = bufs[2] + s * n * count * {itemsize}
        for i in range(n * count):
            {elements}(sides)[i] = {elements}(b)[i]
        for i in range(n):
            for j in range(n):
                {elements}(matrix)[i * n + j] = {elements}(a)[i * n + j]
        sizes[2] = 82
        sizes[3] = {triangle}
        sizes[4] = 78
        sizes[5] = {diagonal}
        {elements}(pivots)[0] = to_{dtype}(1)
        of = sizes + 8
        {trsm}(sizes + 16, sizes + 24, sizes + 32, sizes + 40, of, sizes, pivots, matrix, sizes, sides, of)
        for i in range(n * count):
            {elements}(x)[i] = {elements}(sides)[i]
"""
"""By columns x is its transpose, so the matrix stands at the right (R) and is not transposed (N)."""

_END = """
    status[0] = 0
    return 0
"""


@cache
def routine(name: str) -> tuple[int, str]:
    """The address of a routine in the LAPACK that numpy calls, and the dtype of its ints; 0 if it cannot be told."""
    try:
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
    except (AttributeError, OSError):
        return 0, ""
    for known in _NAMES:
        found = getattr(library, known.format(name), None)
        if found is not None:
            return _address(found), "int64s" if "_64" in known else "int32s"
    return 0, ""


@cache
def _of_scipy(name: str) -> int:
    """The address of a routine of the BLAS that SciPy calls; 0 if it cannot be told."""
    try:
        from scipy.linalg import cython_blas

        capsule = cython_blas.__pyx_capi__[name]
    except (ImportError, AttributeError, KeyError):
        return 0
    get_name, get = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, get_name(capsule)) or 0)


@cache
def _libm(name: str) -> int:
    """The address of a function of C's mathematics, which numpy's determinants call; 0 if it cannot be told."""
    try:
        return _address(getattr(ctypes.CDLL(np.linalg._umath_linalg.__file__), name))
    except (AttributeError, OSError):
        return 0


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _in_place(name: str) -> int:
    """The address of a function that replaces the float64 at an address by `_libm`'s function of it."""
    llvm_engine.define(f"twingrad_libm_{name}", partial(_libm, name))
    text = f"""declare double @twingrad_libm_{name}(double)
define i64 @twingrad_{name}_in_place(i64 %at) {{
  %place = inttoptr i64 %at to ptr
  %x = load double, ptr %place
  %y = call double @twingrad_libm_{name}(double %x)
  store double %y, ptr %place
  ret i64 0
}}
"""
    return load_ir(text, f"twingrad_{name}_in_place")


def _source(
    kernel: HostKernel, python: str, body: str, routines: list[str], count: str = "1", least: int = MOST,
    wide: str = "float64", **more: Any,
) -> str:  # fmt: skip
    """The text of a kernel with one matrix of n rows, and `count` right sides, per item of a batch."""
    dtype, dims = kernel.buffers[0]
    return (_HEAD + body + _END).format(
        python=python, name=kernel.name, routines=", ".join(routines), most=MOST, least=least, words=MOST * MOST,
        rows=dims - 1, count=count, batch=dims - 2, itemsize=dtype.itemsize, dtype=dtype.name,
        elements=f"{dtype.name}s", wide=wide, **more,
    )  # fmt: skip


def solve(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.solve`; empty where the routine is not found.

    Parameters
    ----------
    python : the name of the kernel in Python, to which the rest is left.
    """
    if not _defined("dgesv", routine("dgesv")[0]):
        return ""
    return _source(kernel, python, _SOLVE, ["dgesv"], f"ints[{2 * kernel.buffers[0][1] - 1}]")


def inv(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.inv`, as `solve`."""
    if not _defined("dgesv", routine("dgesv")[0]):
        return ""
    return _source(kernel, python, _INVERSE + _INV, ["dgesv"], "n")


def eigvalsh(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.eigvalsh`, as `solve`."""
    return _values(kernel, python, "dsyevd", _EIGENVALUES, triangle=ord("U" if kernel.words[0] == "U" else "L"))


def svdvals(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.svdvals`, as `solve`, for square matrices."""
    return _values(kernel, python, "dgesdd", _SINGULAR_VALUES, f"1 + (n - ints[{kernel.buffers[0][1] - 2}]) * {MOST}")


def _values(kernel: HostKernel, python: str, name: str, body: str, count: str = "1", **more: Any) -> str:
    if not _defined(name, routine(name)[0]):
        return ""
    return _source(kernel, python, _FINITE + body + _VALUES, [name], count, work=700, **more)


def cholesky(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.cholesky`, as `solve`: of what that leaves to numpy."""
    if not _defined("dpotrf", routine("dpotrf")[0]):
        return ""
    return _source(kernel, python, _CHOLESKY, ["dpotrf"], least=MOST - 1)


def qr(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.qr`, as `solve`, for square matrices."""
    if not (_defined("dgeqrf", routine("dgeqrf")[0]) and _defined("dorgqr", routine("dorgqr")[0])):
        return ""
    return _source(kernel, python, _QR, ["dgeqrf", "dorgqr"], f"1 + (n - ints[{kernel.buffers[0][1] - 2}]) * {MOST}")


def slogdet(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.slogdet`, as `solve`."""
    return _by_factors(kernel, python, "dgetrf", _FACTORS + _DIAGONAL + _SLOGDET, ["log"])


def det(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.det`, as `solve`."""
    return _by_factors(kernel, python, "dgetrf", _FACTORS + _DIAGONAL + _DET, ["log", "exp"])


def cofactors(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.cofactors`, as `solve`, where the inverse has all its digits."""
    body, limits = _INVERSE + _DIAGONAL + _COFACTORS, {"spread": lapack.SPREAD, "root": lapack.ROOT}
    return _by_factors(kernel, python, "dgesv", body, ["log", "exp"], "n", **limits)


def _by_factors(
    kernel: HostKernel, python: str, factoring: str, body: str, functions: list[str], count: str = "1", **more: Any
) -> str:
    address, pivots = routine(factoring)
    if not (_defined(factoring, address) and all(map(_libm, functions))):
        return ""
    for name in functions:
        llvm_engine.define(f"twingrad_twingrad_{name}", partial(_in_place, name))
    names = [factoring, *(f"twingrad_{name}" for name in functions)]
    return _source(kernel, python, body, names, count, pivots=pivots, **more)


def solve_triangular(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.solve_triangular`, as `solve`."""
    dtype, dims = kernel.buffers[0]
    upper, unitriangular = kernel.words
    trsm = f"{'s' if dtype == np.float32 else 'd'}trsm"
    if not _defined(trsm, _of_scipy(trsm)):
        return ""
    return _source(
        kernel, python, _TRIANGULAR, [trsm], f"ints[{2 * dims - 1}]", wide=dtype.name, trsm=trsm,
        triangle=ord("L" if upper else "U"), diagonal=ord("U" if unitriangular else "N"),
    )  # fmt: skip


def _defined(name: str, address: int) -> bool:
    """Let native source call a routine by its name; whether there is one."""
    define: Callable[[], int] = partial(int, address)
    llvm_engine.define(f"twingrad_{name}", define)
    return address != 0


__all__ = [
    "MOST", "cholesky", "cofactors", "det", "eigvalsh", "inv", "qr", "routine", "slogdet", "solve", "solve_triangular",
    "svdvals",
]  # fmt: skip
