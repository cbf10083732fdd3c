"""Run one kernel on arrays, and compare bits."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from common.compiler.compile import compile_kernel

_Kernel = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)


def run(source: str, buffers: Sequence[np.ndarray], args: Sequence[int]) -> int:
    """Compile (or find) the kernel that `source` defines, run it and return its status."""
    name = source[len("def ") : source.index("(")]
    words = [np.array([*values, 0], np.int64) for values in ([x.ctypes.data for x in buffers], args)]
    status = np.zeros(2, np.int64)
    code = _Kernel(compile_kernel(source, name))(
        status.ctypes.data, status[1:].ctypes.data, *(w.ctypes.data for w in words)
    )
    assert code == 0
    assert all(x.flags.c_contiguous for x in buffers)
    return int(status[0])


def assert_same_bits(result: np.ndarray, expected: np.ndarray) -> None:
    """Fail at the first element whose bits differ; two NaNs are equal whatever their payload."""
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    whole = np.dtype(f"u{result.dtype.itemsize}")
    differ = np.ascontiguousarray(result).view(whole) != np.ascontiguousarray(expected).view(whole)
    if result.dtype.kind == "f":
        differ &= ~(np.isnan(result) & np.isnan(expected))
    if differ.any():
        index = tuple(int(i[0]) for i in np.nonzero(differ)) if differ.ndim else ()
        raise AssertionError(
            f"first of {differ.sum()} differences at {index}: {result[index]!r} is not {expected[index]!r}"
        )


def special_values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, nan: bool = True) -> np.ndarray:
    """Return normal numbers, rarely zeros of both signs, subnormals, huge ones, infinities or NaN."""
    if np.dtype(dtype).kind != "f":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, size=shape, dtype=dtype, endpoint=True)
    x = rng.normal(size=shape).astype(dtype)
    info = np.finfo(dtype)
    rare = [0.0, -0.0, info.smallest_subnormal, -info.tiny / 2, info.max, np.inf, -np.inf, *[np.nan] * nan]
    where = rng.random(shape) < 0.02
    x[where] = rng.choice(np.array(rare, dtype), size=int(where.sum()))
    return x
