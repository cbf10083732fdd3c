"""Small matrices without Python: native source that eliminates eight at once, or calls a routine of LAPACK.

Python takes 6 to 10 us for a call, LAPACK less than 1 for a few unknowns. Up to 16 rows, what
`common.kernels.linalg.elimination` defines is computed. The larger matrices of a batch are copied as they are for
`common.kernels.linalg.lapack`, by columns and for numpy in float64: so the routine that numpy or SciPy calls sees the
same numbers, and gives the same bits. What is singular, large or empty is left to Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from common.compiler import llvm_engine
from common.compiler.compile import load_ir
from common.compiler.host_kernels import HostKernel
from common.kernels.linalg import lapack
from common.kernels.linalg import small_system_texts as texts
from common.kernels.linalg.elimination import SMALL
from common.kernels.linalg.elimination_code import define_all

MOST = 32
"""Most unknowns, and right sides, of a small system: both matrices lie on the stack."""

_NAMES = "scipy_{}_64_", "{}_64_", "scipy_{}_", "{}_"
"""How numpy's LAPACK may name a routine. In words of 64 bits a size is right for ints of 32 bits too."""

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
    """The address of a routine of the BLAS or the LAPACK that SciPy calls; 0 if it cannot be told."""
    try:
        from scipy.linalg import cython_blas, cython_lapack

        capsule = (cython_blas.__pyx_capi__ | cython_lapack.__pyx_capi__)[name]
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
    kernel: HostKernel, python: str, body: str, routines: Mapping[str, int], count: str = "1", least: int = MOST,
    wide: str = "float64", lanes: str = "", functions: Sequence[str] = (), **more: Any,
) -> str:  # fmt: skip
    """The text of a kernel with one matrix of n rows, and `count` right sides, per item of a batch; may be empty.

    Parameters
    ----------
    python : the name of the kernel in Python, to which the rest is left.
    body : what `routines` of LAPACK, by their names and addresses, do with one matrix; without one that is not done.
    lanes : what is done with eight small matrices.
    functions : of `_libm`, which `body` calls.
    """
    for name, address in routines.items():
        llvm_engine.define(f"twingrad_{name}", partial(int, address))
    for name in functions:
        llvm_engine.define(f"twingrad_twingrad_{name}", partial(_in_place, name))
    found = bool(body) and all(routines.values()) and all(map(_libm, functions))
    if not (lanes or found):
        return ""
    if lanes:
        define_all()
        lanes = texts.LANES + lanes + texts.DONE
    dtype, dims = kernel.buffers[0]
    names = ", ".join([*routines, *(f"twingrad_{name}" for name in functions), python])
    return (texts.HEAD + lanes + (texts.LOOP + body + texts.END if found else texts.REST)).format(
        python=python, name=kernel.name, names=names, most=MOST,
        least=least, small=SMALL,
        words=8 * SMALL * SMALL, rows=dims - 1, count=count, batch=dims - 2, itemsize=dtype.itemsize, dtype=dtype.name,
        elements=f"{dtype.name}s", wide=wide, **more,
    )  # fmt: skip


def _numpys(*names: str) -> dict[str, int]:
    return {name: routine(name)[0] for name in names}


def solve(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.solve`."""
    count = f"ints[{2 * kernel.buffers[0][1] - 1}]"
    return _source(kernel, python, texts.SOLVE, _numpys("dgesv"), count, lanes=texts.SOLVE_LANES)


def inv(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.inv`."""
    lanes = texts.INVERSE_LANES + texts.INV_LANES
    return _source(kernel, python, texts.INVERSE + texts.INV, _numpys("dgesv"), "n", lanes=lanes)


def eigvalsh(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.eigvalsh`."""
    return _values(kernel, python, "dsyevd", texts.EIGENVALUES, triangle=ord("U" if kernel.words[0] == "U" else "L"))


def svdvals(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.svdvals`, for square matrices."""
    return _values(kernel, python, "dgesdd", texts.SINGULAR_VALUES, _one_if_square(kernel))


def _one_if_square(kernel: HostKernel) -> str:
    """A count of right sides that is right for square matrices alone."""
    return f"1 + (n - ints[{kernel.buffers[0][1] - 2}]) * {MOST}"


def _values(kernel: HostKernel, python: str, name: str, body: str, count: str = "1", **more: Any) -> str:
    return _source(kernel, python, texts.FINITE + body + texts.VALUES, _numpys(name), count, work=700, **more)


def cholesky(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.cholesky`: of what that leaves to numpy, and where nobody is told
    of failures.
    """
    (dtype, _), (user,) = kernel.buffers[0], kernel.words
    potrf = "spotrf" if dtype == np.float32 else "dpotrf"
    body, routines = texts.CHOLESKY, _numpys("dpotrf")
    if user or not _of_scipy(potrf):
        body = body.replace("{failed}", texts.RAISED)
    else:
        body, routines[f"{potrf}_of_scipy"] = body.replace("{failed}", texts.FAILED.strip()), _of_scipy(potrf)
    return _source(kernel, python, body, routines, least=MOST - 1, lanes=texts.CHOLESKY_LANES,
        potrf=f"{potrf}_of_scipy", told=int(bool(user)))


def lu(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.lu`, for small square matrices."""
    square = f"1 - (n - ints[{kernel.buffers[0][1] - 2}]) * (n - ints[{kernel.buffers[0][1] - 2}])"
    return _source(kernel, python, "", {}, square, lanes=texts.LU_LANES, told=int(bool(kernel.words[0])))


def qr(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.qr`, for square matrices."""
    return _source(kernel, python, texts.QR, _numpys("dgeqrf", "dorgqr"), _one_if_square(kernel))


def slogdet(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.slogdet`."""
    body = texts.FACTORS + texts.DIAGONAL + texts.SLOGDET
    return _by_factors(kernel, python, "dgetrf", body, ["log"], lanes=texts.SLOGDET_LANES)


def det(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.det`."""
    body = texts.FACTORS + texts.DIAGONAL + texts.DET
    return _by_factors(kernel, python, "dgetrf", body, ["log", "exp"], lanes=texts.DET_LANES)


def cofactors(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.cofactors`, where the inverse has all its digits."""
    body, limits = texts.INVERSE + texts.DIAGONAL + texts.COFACTORS, {"spread": lapack.SPREAD, "root": lapack.ROOT}
    lanes = texts.INVERSE_LANES + texts.COFACTORS_LANES
    return _by_factors(kernel, python, "dgesv", body, ["log", "exp"], count="n", lanes=lanes, **limits)


def _by_factors(
    kernel: HostKernel, python: str, factoring: str, body: str, functions: Sequence[str], **more: Any
) -> str:
    pivots = routine(factoring)[1]
    return _source(kernel, python, body, _numpys(factoring), pivots=pivots, functions=functions, **more)


def solve_triangular(kernel: HostKernel, python: str) -> str:
    """Native source of `common.kernels.linalg.lapack.solve_triangular`."""
    dtype, dims = kernel.buffers[0]
    upper, unitriangular = kernel.words
    trsm = f"{'s' if dtype == np.float32 else 'd'}trsm"
    return _source(
        kernel, python, texts.TRIANGULAR, {trsm: _of_scipy(trsm)}, f"ints[{2 * dims - 1}]", wide=dtype.name, trsm=trsm,
        triangle=ord("L" if upper else "U"), diagonal=ord("U" if unitriangular else "N"),
        lanes=texts.TRIANGULAR_LANES, upper=int(upper), unitriangular=int(unitriangular),
    )  # fmt: skip


__all__ = [
    "MOST", "cholesky", "cofactors", "det", "eigvalsh", "inv", "lu", "qr", "routine", "slogdet", "solve",
    "solve_triangular", "svdvals",
]  # fmt: skip
