"""Runs of an op of each kind on operands of known forms: a native builtin, and the general way behind it.

Each function fills in `run`, `builtin` and `spec` of a `Recipe` (`common.evaluate.specialise`). A builtin takes
contiguous operands and gives None for others; `run` takes any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from common.core.dtypes import compute_dtypes, operand_dtypes
from common.core.op import REGISTRY, out_specs
from common.core.python_numbers import check_range
from common.core.shapes import broadcast_shapes
from common.core.spec import Spec
from common.evaluate import kernels
from common.evaluate.native_results import in_a_row, in_python, on_arrays, view_of
from common.evaluate.specialise import Recipe, prepares
from common.kernels.arrays.copying import copy_args, copy_source, reversed_source

Run = Callable[..., Any]
_empty = np.empty
_dense = np.ascontiguousarray
_LIMIT = 8192
_LONG = 16
"""Elements of a row from which on a kernel copies it backwards, or reads it where it lies."""
_WORTH = 4096
"""Elements from which on a loop for rows at a distance is worth its compilation: fewer are copied in order."""


@prepares("elementwise")
def _elementwise(self: Recipe) -> None:
    op, forms = self.op, self.forms
    specs = [kernels.form_spec(form) for form in forms]
    self.spec = op.spec(*specs, **self.attrs)
    if "dtype" in self.attrs:
        shape, dtype = forms[0]
        self.builtin, self.run = _convert(shape, dtype, np.dtype(self.attrs["dtype"]))
        self.dtype = dtype
        return
    self.dtype, out_dtype, _ = compute_dtypes(op, specs)
    wanted = operand_dtypes(op, specs)
    shapes = tuple(s.shape for s in specs)
    builtin, loop = _loop(op.name, wanted, out_dtype, shapes, broadcast_shapes(*shapes, op=op.name))
    changes = [
        (i, partial(_number_to, d) if isinstance(form, type) else _convert(form[0], form[1], d)[1])
        for i, (form, d) in enumerate(zip(forms, wanted, strict=True))
        if isinstance(form, type) or form[1] != d
    ]
    self.casts = any(not isinstance(forms[i], type) for i, _ in changes)
    self.builtin = None if self.casts else builtin
    self.run = _changed(changes, loop) if changes else loop


def _changed(changes: list[tuple[int, Run]], loop: Run) -> Run:
    """A loop whose operands are converted first."""

    def run(*operands: Any) -> np.ndarray:
        arrays = list(operands)
        for i, change in changes:
            arrays[i] = change(arrays[i])
        return loop(*arrays)

    return run


def _number_to(dtype: np.dtype, value: Any) -> np.ndarray:
    return number(value, dtype)


def _convert(shape: tuple[int, ...], dtype: np.dtype, target: np.dtype) -> tuple[Run | None, Run]:
    return _loop(f"to_{target.name}", (dtype,), target, (shape,), shape)


@lru_cache(maxsize=_LIMIT)
def _loop(
    name: str, dtypes: tuple[np.dtype, ...], out_dtype: np.dtype, shapes: tuple[Any, ...], shape: tuple[int, ...]
) -> tuple[Run | None, Run]:
    """A loop over `shape`: the builtin, which may decline, or None; and one that takes any layout."""
    builtin = None
    classes, ints = kernels.arrange(shapes, shape)
    if all(s == shape for s in shapes):
        builtin = kernels.same_shape(name, dtypes, out_dtype)
    elif len(shapes) == 2 and () in shapes:
        builtin = kernels.fast(name, dtypes, out_dtype)
    elif None not in classes:
        address = kernels.loop_address(name, dtypes, out_dtype, "".join(map(str, classes)))
        numbers = [i for i, k in enumerate(classes) if k == "s"]
        units = kernels.unit_bytes(classes, ints, (*dtypes, out_dtype))
        builtin = kernels.fixed(address, dtypes, shape, out_dtype, ints, 0, numbers, units)
    loop: list[Run] = []
    turns = kernels.may_turn(name, classes, ints[0], shape)
    lies = where_they_lie if name not in REGISTRY or not REGISTRY[name].versions else _in_order

    def general(*arrays: np.ndarray) -> np.ndarray:
        if name == "clone":  # in one pass
            return _copied(arrays[0], shape, out_dtype)
        if turns and any(kernels.is_turned(x) for x in arrays):
            letters = ["t" if kernels.is_turned(x) else k for x, k in zip(arrays, classes, strict=True)]
            call = kernels.general(name, dtypes, out_dtype, "".join(map(str, letters)))
            out = _empty(shape, out_dtype)
            call(*[x if k == "t" else _dense(x) for x, k in zip(arrays, letters, strict=True)], out, *shape)
            return out
        if found := lies(arrays, classes, shape, ints):
            lying, sizes = found
            out = _empty(shape, out_dtype)
            kernels.general(name, dtypes, out_dtype, lying)(*arrays, out, *sizes)
            return out
        if not loop:
            loop.append(kernels.general(name, dtypes, out_dtype, "".join(k or "f" for k in classes)))
        dense = [_dense(x) if k else _repeated(x, shape) for x, k in zip(arrays, classes, strict=True)]
        out = _empty(shape, out_dtype)
        loop[0](*dense, out, *ints)
        return out

    return builtin, general if builtin is None else _first(builtin, general)


def _in_order(*given: Any) -> None:
    """The place of `where_they_lie` for ops that are less work for some numbers, which other loops look for."""


def where_they_lie(
    arrays: Sequence[Any], classes: Sequence[str | None], shape: tuple[int, ...], ints: Sequence[int]
) -> tuple[str, tuple[int, ...]] | None:
    """Classes and ints for a loop that reads large operands where they lie: in rows at a distance or of one element
    each, or one element everywhere; None where one has to be copied in order first.

    Parameters
    ----------
    classes, ints : as `common.evaluate.kernels.arrange` gives them.
    """
    if prod(shape) < _WORTH or None in classes:
        return None
    letters, distances, columns, as_given = "", [], 0, True
    for x, k in zip(arrays, classes, strict=True):
        if type(x) is not np.ndarray or not x.flags.aligned:
            return None
        if k != "f" or x.flags.c_contiguous:
            if not x.flags.c_contiguous:
                return None
            letters += k or ""
            as_given = as_given and k in ("f", "s")
            continue
        if x.shape == shape and not any(x.strides):
            letters += "s"
            continue
        found = _rows_of(shape, x.strides, x.itemsize) if x.shape == shape else None
        if found is None or columns not in (0, found[0]):
            return None
        columns, distance = found
        letters += "r" if distance is None else "w"
        distances += [] if distance is None else [distance]
    if not set(letters) - set("fs"):
        return letters, (prod(shape), prod(shape))
    columns = columns or ints[1]
    rows = prod(shape) // columns if columns >= _LONG else 0
    if not rows or not (as_given or tuple(ints) == (rows, columns)):
        return None
    return letters, (rows, columns, *distances)


@lru_cache(maxsize=_LIMIT)
def _rows_of(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int | None] | None:
    """How many elements follow each other, and how far one such row is from the next; None if that varies.

    Where one element fills each row and these elements follow each other, None stands for the distance.
    """
    columns, d = 1, len(shape)
    while d and (shape[d - 1] == 1 or strides[d - 1] == 0):
        d -= 1
        columns *= shape[d]
    if columns > 1:
        step = itemsize
        for n, stride in zip(reversed(shape[:d]), reversed(strides[:d]), strict=True):
            if n != 1 and stride != step:
                return None
            step *= n
        return (columns, None) if d else None
    columns, d = 1, len(shape)
    while d and (shape[d - 1] == 1 or strides[d - 1] == columns * itemsize):
        d -= 1
        columns *= shape[d]
    if not d or strides[d - 1] % itemsize:
        return None
    distance, rows = strides[d - 1], 1
    for n, stride in zip(reversed(shape[:d]), reversed(strides[:d]), strict=True):
        if n != 1 and stride != rows * distance:
            return None
        rows *= n
    return columns, distance // itemsize


def _repeated(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array in order, repeated to `shape`."""
    out = _empty(shape, x.dtype)
    np.copyto(out, x)
    return out


def _is_turned(x: np.ndarray) -> bool:
    """Whether elements follow each other, forward or backward, in another dimension than the last one."""
    steps = [abs(s) for s in x.strides]
    return x.itemsize in steps and x.flags.aligned and not any(s % x.itemsize for s in steps)


def _copied(x: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A copy of an array that is not contiguous, or is repeated to `shape`; numpy goes backwards one by one, and
    transposes one by one.
    """
    out = _empty(shape, dtype)
    if x.shape == shape and out.size >= _WORTH and abs(x.strides[-1]) != dtype.itemsize and _is_turned(x):
        ways = tuple([slice(None, None, -1 if s == -dtype.itemsize else 1) for s in x.strides])
        source, target = x[ways], out[ways]
        steps = ([s // dtype.itemsize for s in y.strides] for y in (source, target))
        args = copy_args(shape, 0, next(steps), 0, next(steps))
        kernels.compiled(copy_source(dtype), "copy")(source, target, *args)
        return out
    if x.shape == shape and shape and shape[-1] >= _LONG and x.strides[-1] == -dtype.itemsize:
        forward = x[..., ::-1]
        if forward.flags.carray:
            kernels.compiled(reversed_source(dtype), "reversed_rows")(forward, out, prod(shape[:-1]), shape[-1])
            return out
    np.copyto(out, x)
    return out


def _first(builtin: Run, otherwise: Run) -> Run:
    """The builtin, and what takes over where it declines."""

    def run(*operands: Any) -> Any:
        y = builtin(*operands)
        return otherwise(*operands) if y is None else y

    return run


def spread(shape: tuple[int, ...], dtype: np.dtype, target: tuple[int, ...]) -> tuple[Run | None, Run]:
    """A copy of arrays with sizes of 1 repeated to `target`: the builtin or None, and what takes any layout."""
    return _loop("clone", (dtype,), dtype, (shape,), target)


@lru_cache(maxsize=4096)
def _cached_number(value: Any, dtype: np.dtype) -> np.ndarray:
    return _make_number(value, dtype)


@lru_cache(maxsize=64)
def _cached_zero(text: str, dtype: np.dtype) -> np.ndarray:
    """A zero by its text: equality does not tell 0.0 and -0.0 apart."""
    return _make_number(-0.0 if text[0] == "-" else 0, dtype)


def _make_number(value: Any, dtype: np.dtype) -> np.ndarray:
    if type(value) is int:
        check_range(value)
    with np.errstate(all="ignore"):
        array = np.array(value).astype(dtype)
    array.flags.writeable = False
    return array


def number(value: bool | int | float, dtype: np.dtype) -> np.ndarray:
    """A Python number as a 0-d array, rounded once to `dtype`."""
    return _cached_number(value, dtype) if value else _cached_zero(str(value), dtype)


@prepares("reduction")
def _reduction(self: Recipe) -> None:
    shape, dtype = self.forms[0]
    self.spec = spec = self.op.spec(Spec(shape, dtype), **self.attrs)
    inner = kernels.reduced_dtype(self.op.reduce, spec.dtype)
    if self.op.reduce == "sum" and dtype != inner:
        found = kernels.mapped_sum("wholes", shape, dtype, inner, self.attrs["dim"], spec.shape)
        if found is not None:
            self.builtin, self.run = found
            return
    builtin, reduce = kernels.reduction(self.op.reduce, shape, inner, self.attrs["dim"], spec.shape)
    if dtype == inner:
        self.builtin, self.run = builtin, reduce
        return
    before = _convert(shape, dtype, inner)[1]
    after = None if spec.dtype == inner else _convert(spec.shape, inner, spec.dtype)[1]
    self.run = lambda x: reduce(before(x)) if after is None else after(reduce(before(x)))


@prepares("view")
def _view(self: Recipe) -> None:
    shape, dtype = self.forms[0]
    self.spec = self.op.spec(Spec(shape, dtype), **self.attrs)
    self.run = partial(self.op.array, **self.attrs)
    self.builtin = view_of(self.op, self.attrs, shape, dtype)
    if self.builtin is not None:
        self.run = _first(self.builtin, self.run)


#: By how an op's result is made of its operands, numpy's function that reads them where they lie.
_JOINS: dict[str, Run] = {"join": np.concatenate, "stack up": np.stack}


def _joined(join: Run, out: Any, dim: int) -> Run:
    """Operands of any layout one after the other, in order."""
    return lambda *operands: join(operands, dim, out=_empty(out.shape, out.dtype))


@prepares("kernel")
def _kernel(self: Recipe) -> None:
    op, attrs = self.op, self.attrs
    specs = [kernels.form_spec(form) for form in self.forms]
    self.spec = op.spec(*specs, **attrs)
    outs = out_specs(self.spec)
    calls = op.native(specs, outs, attrs)
    if (found := on_arrays(calls, self.forms, outs)) is not None:
        self.builtin, self.run = found
        return
    join = _JOINS.get(op.parts)
    self.run = in_python(op, calls, len(specs), outs) if join is None else _joined(join, outs[0], attrs["dim"])
    if len(calls) == len(outs) == 1 and calls[0].buffers in (None, tuple(range(len(specs) + 1))):
        (call,), (out,) = calls, outs
        address = kernels.address(call.source, call.name)
        dtypes = [x.dtype for x in specs]
        self.builtin = kernels.fixed(address, dtypes, out.shape, out.dtype, call.ints, call.scratch)
    else:
        self.builtin = in_a_row(calls, self.forms, outs)
    if self.builtin is not None:
        self.run = _first(self.builtin, self.run)
