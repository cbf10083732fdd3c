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
from common.core.op import REGISTRY, Op, out_specs
from common.core.python_numbers import check_range
from common.core.shapes import broadcast_shapes
from common.core.spec import Spec
from common.evaluate import kernels
from common.evaluate.native_results import in_a_row, in_python, on_arrays, view_of
from common.evaluate.specialise import Recipe, prepares, recipe

Run = Callable[..., Any]
_empty = np.empty
_LIMIT, _WAYS = 8192, 64
_UNTOUCHED = 16 << 20
"""Bytes from which on zeros are pages of the system that nobody has touched."""


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
    given = tuple(d if isinstance(form, type) else form[1] for form, d in zip(forms, wanted, strict=True))
    numbers = [(i, d) for i, (form, d) in enumerate(zip(forms, wanted, strict=True)) if isinstance(form, type)]
    shape = broadcast_shapes(*shapes, op=op.name)
    self.casts = given != wanted
    if op.fill == 0 and not op.attrs and prod(shape) * out_dtype.itemsize >= _UNTOUCHED:
        self.run = lambda *_: np.zeros(shape, out_dtype)
        return

    def complete() -> None:
        self.builtin, loop = _loop(op.name, given, out_dtype, shapes, shape, wanted if self.casts else ())
        self.run = _of_arrays(numbers, loop) if numbers else loop

    def first(*operands: Any) -> Any:
        complete()
        return self.run(*operands)

    if self.casts:  # recorded, it converts by ops of their own
        self.run = first
    else:
        complete()


def _of_arrays(numbers: list[tuple[int, np.dtype]], loop: Run) -> Run:
    """A loop of which some operands are Python numbers."""

    def run(*operands: Any) -> np.ndarray:
        arrays = list(operands)
        for i, dtype in numbers:
            arrays[i] = number(arrays[i], dtype)
        return loop(*arrays)

    return run


def _convert(shape: tuple[int, ...], dtype: np.dtype, target: np.dtype) -> tuple[Run | None, Run]:
    return _loop(f"to_{target.name}", (dtype,), target, (shape,), shape)


@lru_cache(maxsize=_LIMIT)
def _loop(
    name: str,
    dtypes: tuple[np.dtype, ...],
    out_dtype: np.dtype,
    shapes: tuple[Any, ...],
    shape: tuple[int, ...],
    wanted: tuple[np.dtype, ...] = (),
) -> tuple[Run | None, Run]:
    """A loop over `shape` that converts its operands: the builtin, which may decline, or None; and one that takes any
    layout.
    """
    builtin = None
    classes, ints = kernels.arrange(shapes, shape)
    if all(s == shape for s in shapes):
        builtin = kernels.same_shape(name, dtypes, out_dtype, wanted)
    elif len(shapes) == 2 and () in shapes:
        builtin = kernels.fast(name, dtypes, out_dtype, wanted)
    elif None not in classes:
        short = kernels.short_columns([name], classes, ints)
        address = kernels.loop_address(name, dtypes, out_dtype, "".join(map(str, classes)), wanted, short)
        numbers = [i for i, k in enumerate(classes) if k == "s"]
        units = kernels.unit_bytes(classes, ints, (*dtypes, out_dtype))
        builtin = kernels.fixed(address, dtypes, shape, out_dtype, ints, 0, numbers, units)

    def way_of(arrays: Sequence[np.ndarray]) -> Run:
        """How operands of these layouts are read, which follows from steps and alignment."""
        from common.evaluate import layouts, strided_loops

        if name == "clone":  # in one pass
            return lambda x: layouts.copied(x, shape, out_dtype)
        costly = (op := REGISTRY.get(name)) is not None and op.costly
        if (how := strided_loops.reading(arrays, shape, costly=costly)) is not None:
            body = kernels.body_of(name, dtypes, wanted)
            known = kernels.versions(name, dtypes, body) if shapes[-1] == () else {}
            source = strided_loops.source(f"loop_{name}", body, dtypes, out_dtype, how.letters, how.outer, known)
            return how.run(kernels.compiled(source, f"loop_{name}"), dtypes, shape, out_dtype)
        letters = "".join([k or "f" for k in classes])
        short = kernels.short_columns([name], letters, ints)
        loop = kernels.general(name, dtypes, out_dtype, letters, wanted, short)

        def of_copies(*arrays: np.ndarray) -> np.ndarray:
            given = [x if k else _repeated(x, shape) for x, k in zip(arrays, classes, strict=True)]
            out = _empty(shape, out_dtype)
            loop(*layouts.all_dense(given), out, *ints)
            return out

        return of_copies

    general = kernels.by_layout(way_of)
    return builtin, general if builtin is None else _first(builtin, general)


def _repeated(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array in order, repeated to `shape`."""
    out = _empty(shape, x.dtype)
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
    from common.evaluate import reduction_kernels

    shape, dtype = self.forms[0]
    self.spec = spec = self.op.spec(Spec(shape, dtype), **self.attrs)
    inner = reduction_kernels.reduced_dtype(self.op.reduce, spec.dtype)
    if self.op.reduce == "sum" and dtype != inner:
        found = reduction_kernels.mapped_sum("wholes", shape, dtype, inner, self.attrs["dim"], spec.shape)
        if found is not None:
            self.builtin, self.run = found
            return
    builtin, reduce = reduction_kernels.reduction(self.op.reduce, shape, inner, self.attrs["dim"], spec.shape)
    if dtype == inner:
        self.builtin, self.run = builtin, reduce
        return
    before = _convert(shape, dtype, inner)[1]
    after = None if spec.dtype == inner else _convert(spec.shape, inner, spec.dtype)[1]
    self.run = lambda x: reduce(before(x)) if after is None else after(reduce(before(x)))


def copy_of(op: Op, attrs: Any, x: np.ndarray) -> Run | None:
    """What copies arrays that lie as x does to another shape, where a view of them is none; or None."""
    if not op.form_only:  # others show some elements of a copy, or show them in another order
        return None
    steps = tuple([s // x.itemsize for s in x.strides])
    if op.strided(0, x.shape, steps, **attrs) is not None:
        return None
    from common.evaluate.layouts import reshaped

    return reshaped(x.shape, x.strides, x.dtype, op.spec(Spec(x.shape, x.dtype), **attrs).shape)


@prepares("view")
def _view(self: Recipe) -> None:
    shape, dtype = self.forms[0]
    self.spec = self.op.spec(Spec(shape, dtype), **self.attrs)
    array = partial(self.op.array, **self.attrs)
    op, attrs = self.op, self.attrs
    ways: dict[Any, Any] = {}

    def run(x: np.ndarray) -> np.ndarray:
        """The view, or the copy that stands for it where none is possible."""
        if not x.flags.c_contiguous:
            way = ways.get(x.strides, ...)
            if way is ... and len(ways) < _WAYS:
                way = ways[x.strides] = copy_of(op, attrs, x) or view_of(op, attrs, shape, dtype, x.strides)
            if way is not None and way is not ... and (y := way(x)) is not None:
                return y
        return array(x)

    self.run = run
    self.builtin = view_of(self.op, self.attrs, shape, dtype)
    if self.builtin is not None:
        self.run = _first(self.builtin, self.run)


#: By how an op's result is made of its operands, numpy's function that reads them where they lie.
_JOINS: dict[str, Run] = {"join": np.concatenate, "stack up": np.stack}


def _joined(join: Run, out: Any, dim: int) -> Run:
    """Operands of any layout one after the other, in order."""
    if join is np.concatenate:
        from common.evaluate import layouts

        return lambda *operands: layouts.joined(operands, out.shape, out.dtype, dim)
    return lambda *operands: join(operands, dim, out=_empty(out.shape, out.dtype))


def _of_turned(self: Recipe) -> Run:
    """A product of matrices of which those that lie transposed are read so: its bits do not depend on that."""
    op, run, given = self.op, self.run, (self.attrs["trans_a"], self.attrs["trans_b"])

    def way_of(operands: Sequence[np.ndarray]) -> Run:
        turned = [not x.flags.c_contiguous and x.swapaxes(-1, -2).flags.c_contiguous for x in operands]
        if not any(turned):
            return _of_rows_apart(operands, *given) or run
        forms = [(x.swapaxes(-1, -2).shape if t else x.shape, x.dtype) for x, t in zip(operands, turned, strict=True)]
        flags = {name: have != t for name, have, t in zip(("trans_a", "trans_b"), given, turned, strict=True)}
        product, (first, second) = recipe(op, tuple(forms), flags).run, turned
        return lambda a, b: product(a.swapaxes(-1, -2) if first else a, b.swapaxes(-1, -2) if second else b)

    return kernels.by_layout(way_of)


def _of_rows_apart(operands: Sequence[np.ndarray], trans_a: bool, trans_b: bool) -> Run | None:
    """A product of a vector and a float matrix whose rows, or columns, lie apart: it is read where it lies. Or None."""
    if len(operands) != 2 or any(x.ndim != 2 or x.dtype.kind != "f" for x in operands):
        return None
    a, b = operands
    left, right = a.T if trans_a else a, b if trans_b else b.T  # rows of both are multiplied
    (m, k), n, size = left.shape, right.shape[0], a.itemsize
    if k < 2 or (m == 1) == (n == 1):
        return None
    matrix = right if m == 1 else left
    count, (step, beside) = len(matrix), matrix.strides
    columns = step == size
    step, beside, extent = (beside, step, count) if columns else (step, beside, k)
    if beside != size or step % size or step < extent * size or not matrix.flags.aligned:
        return None
    from common.kernels.arrays.gemm import apart_source

    kernel = kernels.compiled(apart_source(a.dtype), "gemv_apart")
    ints = count, k, step // size, int(columns)

    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = np.empty((m, n), a.dtype)
        matrix, vector = (b, a) if m == 1 else (a, b)
        kernel(matrix, np.ascontiguousarray(vector), out, *ints)
        return out

    return product


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
    if op.product and "trans_a" in attrs:
        self.run = _of_turned(self)
    if op.indexed is not None and op.indexed.own:
        from common.evaluate.expanded_indices import shared

        self.run = shared(op, attrs["dim"], outs[0], self.run)
    elif op.indexed is not None and op.indexed.one and not op.indexed.writes:
        from common.evaluate.expanded_indices import one_of_rows

        self.run = one_of_rows(outs[0], self.run)
    if self.builtin is not None:
        self.run = _first(self.builtin, self.run)
