"""A scalar definition compiled the way kernels are: inlined into one plain loop that LLVM vectorises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from common.compiler.primitives import Value, evaluate

__all__ = ["compile_loop"]


def compile_loop(name: str, definition: Callable[..., Value], *dtypes: Any) -> Callable[..., np.ndarray]:
    """Compile ``out[i] = definition(x0[i], ...)``.

    Parameters
    ----------
    name : str
        An identifier for the definition, unique in the process.
    definition : callable
        A scalar definition.
    dtypes : dtype
        One per operand.

    Returns
    -------
    callable
        ``loop(*arrays, out=None)`` on contiguous arrays of equal size; returns ``out``.

    Examples
    --------
    >>> loop = compile_loop("twice", lambda x: x + x, np.float32)
    >>> loop(np.array([1.5, 2.0], np.float32))
    array([3., 4.], dtype=float32)
    """
    from common.compiler.compile import compile_kernel, define_scalar
    from common.runtime.builtins import make_call

    out_dtype = np.asarray(evaluate(definition, *[np.ones(1, dtype) for dtype in dtypes])).dtype
    define_scalar(f"loop_{name}", definition)
    kernel = f"k_{name}"
    types = [*map(np.dtype, dtypes), out_dtype]
    buffers = "".join(f"    x{i} = buffer(bufs, {i}, {_source_name(dtype)})\n" for i, dtype in enumerate(types))
    operands = ", ".join(f"x{i}[i]" for i in range(len(dtypes)))
    source = (
        f"def {kernel}(bufs, args):\n    wide()\n{buffers}    for i in range(args[0]):\n"
        f"        x{len(dtypes)}[i] = loop_{name}({operands})\n    return 0\n"
    )
    call = make_call(compile_kernel(source, kernel))

    def loop(*arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        result = np.empty(arrays[0].shape, out_dtype) if out is None else out
        call(*arrays, result, result.size)
        return result

    return loop


def _source_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype in kernel source."""
    return "bool_" if dtype.kind == "b" else dtype.name
