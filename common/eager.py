"""Running ops on arrays at once: what the eager engine and the interpreter do.

Elementwise ops run compiled loops, generated from the scalar expression (`common.eager_kernels`). No numpy ufunc
does arithmetic, so numpy's floating-point warnings and error state play no part. What follows from shapes and
dtypes alone (kernel, integer arguments, layout) is worked out once and kept as a *recipe*: a closure that takes
the arrays.
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

Recipe = Callable[..., Any]
_recipes = lru_cache(maxsize=8192)
_empty = np.empty
_dense = np.ascontiguousarray


def run(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Run an op on arrays and Python numbers."""
    return _RUN[op.kind](op, operands, attrs)


def _elementwise(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    # numpy's float64 scalars are Python floats too, but not weak: they are 0-d results of a rule's arithmetic
    arrays = [
        x if isinstance(x, (np.ndarray, bool, int, float)) and not isinstance(x, np.float64) else np.asarray(x)
        for x in operands
    ]
    forms = tuple((x.shape, x.dtype) if isinstance(x, np.ndarray) else type(x) for x in arrays)
    return elementwise_recipe(op, forms, attrs.get("dtype"))(*arrays)


@_recipes
def elementwise_recipe(op: Op, forms: tuple[Any, ...], target: Any) -> Recipe:
    """How to run an elementwise op on operands of these shapes and dtypes; a bare type stands for a number."""
    if target is not None:
        return _convert(forms[0][0], forms[0][1], np.dtype(target))
    specs = [kernels.form_spec(form) for form in forms]
    dtype, out_dtype, _ = compute_dtypes(op, specs)
    wanted = [np.dtype(np.bool_) if op.name == "where" and i == 0 else dtype for i in range(len(forms))]
    shape = broadcast_shapes(*(s.shape for s in specs), op=op.name)
    loop = _loop(op.name, tuple(wanted), out_dtype, tuple(s.shape for s in specs), shape)
    changes = [
        (i, _number_to(d) if isinstance(form, type) else _convert(form[0], form[1], d))
        for i, (form, d) in enumerate(zip(forms, wanted, strict=True))
        if isinstance(form, type) or form[1] != d
    ]
    if not changes:
        return loop

    def recipe(*operands: Any) -> np.ndarray:
        arrays = list(operands)
        for i, change in changes:
            arrays[i] = change(arrays[i])
        return loop(*arrays)

    return recipe


def _number_to(dtype: np.dtype) -> Recipe:
    return lambda value: number(value, dtype)


@_recipes
def _convert(shape: tuple[int, ...], dtype: np.dtype, target: np.dtype) -> Recipe:
    return _loop(f"to_{target.name}", (dtype,), target, (shape,), shape)


@_recipes
def _loop(name: str, dtypes: Any, out_dtype: np.dtype, shapes: tuple[Any, ...], shape: tuple[int, ...]) -> Recipe:
    """A loop over `shape`: the builtin where it accepts the arrays, else operands brought into a known layout."""
    same = all(s == shape for s in shapes)
    builtin = kernels.same_shape(name, dtypes, out_dtype) if same else None
    classes, rows, columns = kernels.arrange(shapes, shape)
    general = kernels.general(name, dtypes, out_dtype, "".join(k or "f" for k in classes))

    def recipe(*arrays: np.ndarray) -> np.ndarray:
        if builtin is not None:
            y = builtin(*arrays)
            if y is not None:
                return y
        dense = [_dense(x if k else np.broadcast_to(x, shape)) for x, k in zip(arrays, classes, strict=True)]
        out = _empty(shape, out_dtype)
        general(*dense, out, rows, columns)
        return out

    return recipe


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
    x = operands[0]
    if not isinstance(x, np.ndarray):
        x = np.asarray(x)
    return reduction_recipe(op, x.shape, x.dtype, attrs["dim"], attrs["keepdim"])(x)


@_recipes
def reduction_recipe(op: Op, shape: Any, dtype: np.dtype, dim: tuple[int, ...], keepdim: bool) -> Recipe:
    """How to reduce arrays of this shape and dtype."""
    spec = op.spec(Spec(shape, dtype), dim=dim, keepdim=keepdim)
    inner = np.dtype(np.int64) if spec.dtype.kind in "biu" else spec.dtype
    reduce = kernels.reduction(op.reduce, shape, inner, dim, spec.shape)
    if dtype == inner:
        return reduce
    before = _convert(shape, dtype, inner)
    after = None if spec.dtype == inner else _convert(spec.shape, inner, spec.dtype)
    return lambda x: reduce(before(x)) if after is None else after(reduce(before(x)))


def _view(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    return op.array(operands[0], **attrs)


def _kernel(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    arrays = [_dense(x) if np.ndim(x) else np.asarray(x) for x in operands]
    forms = tuple((x.shape, x.dtype) for x in arrays)
    items = tuple(attrs.items())
    if 0 in attrs.values():  # a cache would take -0.0 for 0.0
        return kernel_recipe.__wrapped__(op, forms, items)(*arrays)
    return kernel_recipe(op, forms, items)(*arrays)


@_recipes
def kernel_recipe(op: Op, forms: tuple[Any, ...], items: tuple[Any, ...]) -> Recipe:
    """How to run a kernel op on contiguous arrays of these shapes and dtypes."""
    attrs = dict(items)
    specs = [Spec(*form) for form in forms]
    outs = out_specs(op.spec(*specs, **attrs))
    steps = []
    for call in op.native(specs, outs, attrs):
        slots = range(len(specs) + len(outs)) if call.buffers is None else call.buffers
        scratch = (_empty(call.scratch, np.uint8),) if call.scratch else ()
        steps.append((kernels.compiled(call.source, call.name), tuple(slots), scratch, call.ints, call.errors))

    def recipe(*arrays: np.ndarray) -> Any:
        results = [_empty(spec.shape, spec.dtype) for spec in outs]
        buffers = [*arrays, *results]
        for kernel, slots, scratch, ints, errors in steps:
            status = kernel(*[buffers[i] for i in slots], *scratch, *ints)
            if status:
                raise_status(op, errors, status)
        return results[0] if len(results) == 1 else tuple(results)

    return recipe


def raise_status(op: Op, errors: Mapping[int, str], status: int) -> None:
    """Raise what a kernel's status stands for.

    Raises
    ------
    IndexRangeError, DivisionByZeroError : always one of them.
    """
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
