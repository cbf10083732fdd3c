"""Running ops on arrays at once: what the eager engine and the interpreter do.

Elementwise ops run compiled loops, generated here from the scalar expression. A builtin made of native code
checks dtypes, shapes and layout, allocates the result and runs the loop (about 0.1 us for small arrays, where
a numpy ufunc costs 0.3); what it does not accept goes through the general path below. No numpy ufunc does
arithmetic, so numpy's floating-point warnings and error state play no part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from common import eager_kernels as kernels
from common.errors import DivisionByZeroError, IndexRangeError
from common.op import Op, out_specs
from common.ops._define import broadcast_shapes, compute_dtypes
from common.spec import Spec


def run(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Run an op on arrays and Python numbers."""
    return _RUN[op.kind](op, operands, attrs)


def _elementwise(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    if attrs:
        (x,) = operands
        x = np.asarray(x)
        target = np.dtype(attrs["dtype"])
        name = f"to_{target.name}"
        return _launch(name, (x.dtype,), target, [x], x.shape)
    specs = [kernels.operand_spec(x) for x in operands]
    dtype, out_dtype, weak = compute_dtypes(op, specs)
    arrays = []
    for position, x in enumerate(operands):
        wanted = np.dtype(np.bool_) if op.name == "where" and position == 0 else dtype
        if isinstance(x, (bool, int, float)):
            x = number(x, wanted)
        elif x.dtype != wanted:
            x = _launch(f"to_{wanted.name}", (x.dtype,), wanted, [np.asarray(x)], x.shape)
        arrays.append(np.asarray(x))
    shape = broadcast_shapes(*(x.shape for x in arrays), op=op.name)
    return _launch(op.name, tuple(x.dtype for x in arrays), out_dtype, arrays, shape)


def _launch(name: str, dtypes: Any, out_dtype: np.dtype, arrays: list[np.ndarray], shape: Any) -> np.ndarray:
    """Run a loop over `shape`: the builtin where it accepts the arrays, else operands brought into a known layout."""
    y = kernels.fast(name, dtypes, out_dtype)(*arrays)
    if y is not None:
        return y
    dense, classes, rows, columns = kernels.arrange(arrays, shape)
    out = np.empty(shape, out_dtype)
    kernels.general(name, dtypes, out_dtype, classes)(*dense, out, rows, columns)
    return out


@lru_cache(maxsize=4096)
def _cached_number(value: Any, dtype: np.dtype) -> np.ndarray:
    return _make_number(value, dtype)


def _make_number(value: Any, dtype: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        array = np.array(value).astype(dtype)
    array.flags.writeable = False
    return array


def number(value: bool | int | float, dtype: np.dtype) -> np.ndarray:
    """A Python number as a 0-d array, rounded once to `dtype`."""
    return _cached_number(value, dtype) if value else _make_number(value, dtype)


def _reduction(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    x = np.asarray(operands[0])
    spec = op.spec(Spec(x.shape, x.dtype), **attrs)
    dims = attrs["dim"]
    if op.reduce == "sum" and x.dtype != spec.dtype:
        x = _launch(f"to_{spec.dtype.name}", (x.dtype,), spec.dtype, [x], x.shape)
    return kernels.reduce(op.reduce, x, dims, spec.shape)


def _view(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    return op.array(operands[0], **attrs)


def _kernel(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    arrays = [np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x) for x in operands]
    specs = [Spec(x.shape, x.dtype) for x in arrays]
    outs = out_specs(op.spec(*specs, **attrs))
    results = [np.empty(spec.shape, spec.dtype) for spec in outs]
    buffers = [*arrays, *results]
    for call in op.native(specs, outs, attrs):
        chosen = buffers if call.buffers is None else [buffers[i] for i in call.buffers]
        if call.scratch:
            chosen = [*chosen, np.empty(call.scratch, np.uint8)]
        status = kernels.compiled(call.source, call.name)(*chosen, *call.ints)
        if status:
            raise_status(op, call.errors, status)
    return results[0] if op.nout == 1 else tuple(results)


def raise_status(op: Op, errors: Mapping[int, str], status: int) -> None:
    """Raise what a kernel's status stands for."""
    text = errors.get(status, f"kernel status {status}")
    kind: Callable[[str], Exception] = DivisionByZeroError if "division" in text else IndexRangeError
    raise kind(f"{op.name}(): {text}")


def _composite(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    with np.errstate(all="ignore"):
        return op.forward(*operands, **attrs)


_RUN: dict[str, Callable[[Op, Sequence[Any], Mapping[str, Any]], Any]] = {
    "elementwise": _elementwise,
    "reduction": _reduction,
    "view": _view,
    "kernel": _kernel,
    "composite": _composite,
}
