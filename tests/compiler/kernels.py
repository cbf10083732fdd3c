"""Kernels that the tests of the machine code share."""

from __future__ import annotations

import ctypes

import numpy as np

from common.compiler.compile import define_scalar

define_scalar("plus", lambda x, y: x + y)
define_scalar("times", lambda x, y: x * y)

ADD = """def test_add(bufs, args):
    x = buffer(bufs, 0, float32)
    y = buffer(bufs, 1, float32)
    z = buffer(bufs, 2, float32)
    for i in range(args[0]):
        z[i] = plus(x[i], y[i])
    return 0
"""

ADD_RIGHT = """def test_add_right(bufs, args):
    x = buffer(bufs, 0, float32)
    y = buffer(bufs, 1, float32)
    z = buffer(bufs, 2, float32)
    for i in range(args[0]):
        z[i] = plus(x[i], y[0])
    return 0
"""

ADD_LEFT = ADD_RIGHT.replace("test_add_right", "test_add_left").replace("plus(x[i], y[0])", "plus(x[0], y[i])")

FAIL = """def test_fail(bufs, args):
    return args[0]
"""


def run_kernel(address: int, arrays: list[np.ndarray], ints: list[int]) -> int:
    """Run a kernel through ctypes alone, by the documented ABI."""
    kernel = ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(address)
    status, exception = ctypes.c_int64(-1), ctypes.c_void_p()
    bufs = (ctypes.c_int64 * (len(arrays) + 1))(*[array.ctypes.data for array in arrays])
    args = (ctypes.c_int64 * (len(ints) + 1))(*ints)
    assert kernel(ctypes.byref(status), ctypes.byref(exception), bufs, args) == 0
    return status.value
