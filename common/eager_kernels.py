"""Compiled loops for ops on arrays, made when an op first meets a combination of dtypes and layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from common.dtypes import number_spec
from common.errors import ShapeError
from common.kernels import sums
from common.native.calls import make_call, make_elementwise
from common.native.compile import add_namespace, compile_kernel
from common.op import REGISTRY
from common.spec import Spec

Call = Callable[..., Any]


def scalar_expression(name: str) -> Any:
    """The scalar expression behind a name in kernel source, None for unknown names."""
    op = REGISTRY.get(name)
    return op.scalar if op is not None and op.kind == "elementwise" and not op.attrs else None


add_namespace(scalar_expression)


def operand_spec(x: Any) -> Spec:
    """The spec of an array or a Python number."""
    return number_spec(x) if isinstance(x, (bool, int, float)) else Spec(x.shape, x.dtype)


@cache
def compiled(source: str, name: str) -> Call:
    """A kernel as a Python callable: arrays in, then ints; returns its status."""
    return make_call(compile_kernel(source, name))


@cache
def fast(name: str, dtypes: tuple[np.dtype, ...], out_dtype: np.dtype) -> Call:
    """The builtin for operands of one shape, or of which one is 0-d; None as result means: take the general path."""
    full = _address(name, dtypes, out_dtype, "f" * len(dtypes))
    if len(dtypes) != 2:
        return make_elementwise(dtypes, out_dtype, full)
    left = _address(name, dtypes, out_dtype, "sf")
    right = _address(name, dtypes, out_dtype, "fs")
    return make_elementwise(dtypes, out_dtype, full, left, right)


@cache
def same_shape(name: str, dtypes: tuple[np.dtype, ...], out_dtype: np.dtype) -> Call:
    """The builtin for operands of one shape only, so that its result needs no un-broadcasting."""
    return make_elementwise(dtypes, out_dtype, _address(name, dtypes, out_dtype, "f" * len(dtypes)))


@cache
def general(name: str, dtypes: tuple[np.dtype, ...], out_dtype: np.dtype, classes: str) -> Call:
    """The loop for operands of the given classes, called with operands, result, rows and columns."""
    return make_call(_address(name, dtypes, out_dtype, classes))


def _address(name: str, dtypes: tuple[np.dtype, ...], out_dtype: np.dtype, classes: str) -> int:
    return compile_kernel(elementwise_source(name, dtypes, out_dtype, classes), f"loop_{name}")


_INDEX = {"f": "r * columns + c", "r": "r", "c": "c"}


def elementwise_source(name: str, dtypes: Sequence[np.dtype], out_dtype: np.dtype, classes: str) -> str:
    """Kernel source of one elementwise op over rows x columns.

    Parameters
    ----------
    classes : per operand "f" (all elements), "r" (one per row), "c" (one per column) or "s" (one).
    """
    lines = [f"def loop_{name}(bufs, args):"]
    lines += [f"    x{i} = buffer(bufs, {i}, {_buffer_dtype(d)})" for i, d in enumerate(dtypes)]
    lines += [f"    y = buffer(bufs, {len(dtypes)}, {_buffer_dtype(out_dtype)})"]
    flat = not set(classes) & set("rc")
    lines += [f"    s{i} = x{i}[0]" for i, k in enumerate(classes) if k == "s"]
    if not flat:
        lines += ["    columns = args[1]"]
    index = {"f": "c"} if flat else _INDEX
    operands = ", ".join(f"s{i}" if k == "s" else f"x{i}[{index[k]}]" for i, k in enumerate(classes))
    loop = [
        f"for c in range({'args[0]' if flat else 'columns'}):",
        f"    y[{index['f']}] = {name}({operands})",
    ]
    if not flat:
        loop = ["for r in range(args[0]):"] + ["    " + line for line in loop]
    # an empty result must not read the scalar operands of a call that has nothing to compute
    guard = ["    if args[0] == 0:", "        return 0"] if "s" in classes else []
    lines[1 + len(dtypes) + 1 : 1 + len(dtypes) + 1] = guard
    return "\n".join([*lines, "    wide()", *("    " + line for line in loop), "    return 0", ""])


def _buffer_dtype(dtype: np.dtype) -> str:
    return "bool_" if dtype == np.bool_ else dtype.name


def arrange(arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> tuple[list[np.ndarray], str, int, int]:
    """Operands as contiguous arrays with an access class each, over the best split of `shape` into rows x columns.

    An operand that no class fits is copied to the full shape.
    """
    split = _best_split(arrays, shape)
    rows = int(np.prod(shape[:split], dtype=np.int64))
    columns = int(np.prod(shape[split:], dtype=np.int64))
    classes = [_class_of(x.shape, shape, split) for x in arrays]
    dense = [
        np.ascontiguousarray(x if k else np.broadcast_to(x, shape))
        for x, k in zip(arrays, classes, strict=True)
    ]
    names = "".join(k or "f" for k in classes)
    return dense, names, (rows if set(names) & set("rc") else rows * columns), columns


def _best_split(arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> int:
    misses = [sum(_class_of(x.shape, shape, s) is None for x in arrays) for s in range(len(shape) + 1)]
    return misses.index(min(misses))


def _class_of(have: tuple[int, ...], shape: tuple[int, ...], split: int) -> str | None:
    """The access class of an operand under a split, None if no class fits."""
    padded = (1,) * (len(shape) - len(have)) + have
    varies = [m == n for m, n in zip(padded, shape, strict=True)]
    head = [v for v, n in zip(varies[:split], shape[:split], strict=True) if n != 1]
    tail = [v for v, n in zip(varies[split:], shape[split:], strict=True) if n != 1]
    if all(head) and all(tail):
        return "f"
    if not any(head) and not any(tail):
        return "s"
    if all(head) and not any(tail):
        return "r"
    if not any(head) and all(tail):
        return "c"
    return None


def reduce(kind: str, x: np.ndarray, dims: tuple[int, ...], out_shape: tuple[int, ...]) -> np.ndarray:
    """Sum, maximum or minimum over `dims`; several dims are flattened in C order."""
    if kind != "sum" and x.dtype not in (np.float32, np.float64, np.int64):
        return reduce(kind, x.astype(np.int64), dims, out_shape).astype(x.dtype)
    out = np.empty(out_shape, x.dtype)
    if not dims or out.size == 0:
        if out.size:
            out[...] = x if kind != "sum" else x + x.dtype.type(0)
        return out
    batch, rows, columns, x = _layout(x, dims)
    if columns == 1 or rows == 0:
        source = getattr(sums, f"{kind}_rows_source")(x.dtype)
        status = compiled(source, f"{kind}_rows")(x, out, batch * columns, rows)
    else:
        source = getattr(sums, f"{kind}_cols_source")(x.dtype)
        scratch = [np.empty(sums.sum_cols_scratch(rows, columns), x.dtype)] if kind == "sum" else []
        status = compiled(source, f"{kind}_cols")(x, out, *scratch, batch, rows, columns)
    if status:
        raise ShapeError(f"a{kind}(): a reduced dimension has size 0 and the op has no identity")
    return out


def _layout(x: np.ndarray, dims: tuple[int, ...]) -> tuple[int, int, int, np.ndarray]:
    """Batch, rows and columns of a contiguous array whose rows are reduced."""
    first, last = dims[0], dims[-1]
    if last - first + 1 != len(dims):
        kept = tuple(i for i in range(x.ndim) if i not in dims)
        x = x.transpose(kept + dims)
        first, last = len(kept), x.ndim - 1
    size = [
        int(np.prod(x.shape[a:b], dtype=np.int64))
        for a, b in ((0, first), (first, last + 1), (last + 1, x.ndim))
    ]
    return size[0], size[1], size[2], np.ascontiguousarray(x)


__all__ = ["arrange", "compiled", "fast", "general", "operand_spec", "reduce"]
