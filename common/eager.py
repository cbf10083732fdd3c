"""Running ops on arrays at once: what the eager engine and the interpreter do.

What follows from an op, its attributes and the shapes and dtypes of its operands (kernel, integer arguments, layout,
conversions, rules of the gradient) is worked out once and kept as a `Recipe`. Elementwise ops run compiled loops
(`common.eager_kernels`). No numpy ufunc does arithmetic, so numpy's warnings and error state play no part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from threading import Lock
from typing import Any

import numpy as np

from common import apply
from common import eager_kernels as kernels
from common import op as ops
from common.apply import Attrs
from common.autograd.tape import fit
from common.dtypes import compute_dtypes, operand_dtypes
from common.errors import DivisionByZeroError, IndexRangeError
from common.number import as_array, check_range
from common.op import Op, out_specs
from common.shapes import broadcast_shapes
from common.spec import Spec

Run = Callable[..., Any]
NUMBERS = (bool, int, float)
_empty = np.empty
_dense = np.ascontiguousarray
_ndarray = np.ndarray
_LIMIT = 8192


class Recipe:
    """How an op runs, and is differentiated, for operands of given forms.

    Attributes
    ----------
    forms : per operand (shape, dtype), or the type of a Python number.
    run : the op on operands of these forms.
    spec : of the result, or of each; None for a composite that has not run yet.
    dtype : in which an elementwise op computes.
    builtin : native code for operands of that dtype and of contiguous layout; gives None for others. Or None.
    casts : whether operands are converted first.
    recorded : whether the result may have a gradient.
    backward : ``backward(saved, attrs, g, needs)``: contributions in the operands' shapes and dtypes.
    """

    __slots__ = ("op", "forms", "attrs", "run", "spec", "dtype", "builtin", "casts", "recorded", "backward")

    run: Run
    spec: Any
    dtype: Any
    builtin: Run | None
    backward: Callable[..., tuple[Any, ...]]

    def __init__(self, op: Op, forms: tuple[Any, ...], attrs: Mapping[str, Any]) -> None:
        self.op, self.forms, self.attrs = op, forms, dict(attrs)
        self.builtin = self.dtype = self.spec = None
        self.casts = False
        self.backward = first_backward(self)
        _PREPARE[op.kind](self)
        specs = () if self.spec is None else out_specs(self.spec)
        self.recorded = op.differentiable and all(spec.dtype.kind == "f" for spec in specs[:1])


recipes: dict[Any, Recipe] = {}
_lock = Lock()


def recipe(op: Op, forms: tuple[Any, ...], attrs: Mapping[str, Any]) -> Recipe:
    """The recipe of an op for operands of these forms; its key is op, forms one after the other, and attributes."""
    key: list[Any] = [op]
    for form in forms:
        key += form if type(form) is tuple else (form,)
    if attrs:
        # equality does not tell 0.0, -0.0 and False apart; without operands, attributes are such values
        key.append(repr(attrs) if not forms else attrs if type(attrs) is Attrs else tuple(attrs.items()))
    try:
        found = recipes.get(tuple(key))
    except TypeError:  # an attribute that is a list
        return Recipe(op, forms, attrs)
    if found is None:
        found = Recipe(op, forms, attrs)
        with _lock:
            if len(recipes) >= _LIMIT:
                del recipes[next(iter(recipes))]
            recipes[tuple(key)] = found
    return found


def run_rules(op: Op, saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
    """The rules of an op on arrays; operators on arrays are numpy's, which would warn."""
    with np.errstate(all="ignore"):
        return op.backward(saved, attrs, g, needs)


def first_backward(self: Recipe) -> Run:
    """The gradient of an op for operands of one form: its rules, and from the second call on as straight lines.

    Writing lines is worth it only for forms that come again.
    """
    op, forms = self.op, self.forms
    calls = 0

    def backward(saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        nonlocal calls
        calls += 1
        if calls == 2:
            from common.straight import straight_backward

            self.backward = straight_backward(self, general) or general
        return general(saved, attrs, g, needs) if calls == 1 else self.backward(saved, attrs, g, needs)

    def general(saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        contributions = run_rules(op, saved, attrs, g, needs)
        return tuple([c if c is None else fit(c, *form) for c, form in zip(contributions, forms, strict=True)])

    return backward


def _forget(op: Op) -> None:
    with _lock:
        for key in [key for key in recipes if key[0] is op]:
            del recipes[key]


ops.rules_changed.append(_forget)


def run(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Run an op on arrays and Python numbers."""
    arrays, forms = [], []
    for x in operands:
        kind = type(x)
        if kind is not _ndarray and (not isinstance(x, NUMBERS) or isinstance(x, np.generic)):
            x = as_array(x)
            kind = _ndarray
        arrays.append(x)
        forms.append((x.shape, x.dtype) if kind is _ndarray else kind)
    return recipe(op, tuple(forms), attrs).run(*arrays)


apply.run = run


# ------------------------------------------------------------------ elementwise


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
    if not changes:
        self.run = loop
    elif builtin is not None and len(forms) == 2 and isinstance(forms[1], type) and len(changes) == 1:
        self.run = partial(_with_number, builtin, loop, self.dtype)
    else:
        self.run = _changed(changes, loop)


def _with_number(builtin: Run, loop: Run, dtype: np.dtype, a: np.ndarray, b: Any) -> np.ndarray:
    """A binary loop whose right operand is a number."""
    number_b = number(b, dtype)
    y = builtin(a, number_b)
    result: np.ndarray = loop(a, number_b) if y is None else y
    return result


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
    if all(s == shape for s in shapes):
        builtin = kernels.same_shape(name, dtypes, out_dtype)
    elif len(shapes) == 2 and () in shapes:
        builtin = kernels.fast(name, dtypes, out_dtype)
    classes, rows, columns = kernels.arrange(shapes, shape)
    loop: list[Run] = []
    turns = kernels.may_turn(name, classes, rows, shape)

    def general(*arrays: np.ndarray) -> np.ndarray:
        if turns and any(kernels.is_turned(x) for x in arrays):
            letters = ["t" if kernels.is_turned(x) else k for x, k in zip(arrays, classes, strict=True)]
            call = kernels.general(name, dtypes, out_dtype, "".join(map(str, letters)))
            out = _empty(shape, out_dtype)
            call(*[x if k == "t" else _dense(x) for x, k in zip(arrays, letters, strict=True)], out, *shape)
            return out
        if not loop:
            loop.append(kernels.general(name, dtypes, out_dtype, "".join(k or "f" for k in classes)))
        dense = [_dense(x if k else np.broadcast_to(x, shape)) for x, k in zip(arrays, classes, strict=True)]
        out = _empty(shape, out_dtype)
        loop[0](*dense, out, rows, columns)
        return out

    if builtin is not None:

        def first(*arrays: np.ndarray) -> Any:
            y = builtin(*arrays)
            return general(*arrays) if y is None else y

        return builtin, first
    if len(classes) == 2 and None not in classes:
        call = kernels.general(name, dtypes, out_dtype, "".join(map(str, classes)))

        def two(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            out = _empty(shape, out_dtype)
            call(_dense(a), _dense(b), out, rows, columns)
            return out

        return None, two
    return None, general


def spread(shape: tuple[int, ...], dtype: np.dtype, target: tuple[int, ...]) -> Run:
    """A copy of arrays of `shape` with sizes of 1 repeated to `target`."""
    return _loop("clone", (dtype,), dtype, (shape,), target)[1]


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


# ------------------------------------------------------------------ other kinds


def _reduction(self: Recipe) -> None:
    shape, dtype = self.forms[0]
    self.spec = spec = self.op.spec(Spec(shape, dtype), **self.attrs)
    inner = kernels.reduced_dtype(self.op.reduce, spec.dtype)
    if self.op.reduce == "sum" and dtype != inner:
        found = kernels.mapped_sum("wholes", shape, dtype, inner, self.attrs["dim"], spec.shape)
        if found is not None:
            self.run = found
            return
    reduce = kernels.reduction(self.op.reduce, shape, inner, self.attrs["dim"], spec.shape)
    if dtype == inner:
        self.run = reduce
        return
    before = _convert(shape, dtype, inner)[1]
    after = None if spec.dtype == inner else _convert(spec.shape, inner, spec.dtype)[1]
    self.run = lambda x: reduce(before(x)) if after is None else after(reduce(before(x)))


def _view(self: Recipe) -> None:
    shape, dtype = self.forms[0]
    self.spec = self.op.spec(Spec(shape, dtype), **self.attrs)
    self.run = partial(self.op.array, **self.attrs)


def _kernel(self: Recipe) -> None:
    op, attrs = self.op, self.attrs
    specs = [kernels.form_spec(form) for form in self.forms]
    self.spec = op.spec(*specs, **attrs)
    outs = out_specs(self.spec)
    steps = []
    for call in op.native(specs, outs, attrs):
        slots = range(len(specs) + len(outs)) if call.buffers is None else call.buffers
        steps.append((kernels.compiled(call.source, call.name), tuple(slots), call.scratch, call.ints, call.errors))

    def general(*operands: Any) -> Any:
        results = [_empty(spec.shape, spec.dtype) for spec in outs]
        buffers = [*map(_dense, operands), *results]
        for kernel, slots, scratch, ints, errors in steps:
            held = (kernels.scratch(scratch),) if scratch else ()
            status = kernel(*[buffers[i] for i in slots], *held, *ints)
            if status:
                raise_status(op, errors, status)
        return results[0] if len(results) == 1 else tuple(results)

    self.run = general
    if len(steps) == 1 and steps[0][1] == (0, 1, 2) and len(outs) == 1 and not steps[0][2]:
        kernel, _, _, numbers, errors = steps[0]
        shape, dtype, _ = outs[0]

        def two(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            out = _empty(shape, dtype)
            status = kernel(_dense(a), _dense(b), out, *numbers)
            if status:
                raise_status(op, errors, status)
            return out

        self.run = two


def raise_status(op: Op, errors: Mapping[int, str], status: int) -> None:
    """Raise what a kernel's status stands for.

    Raises
    ------
    IndexRangeError, DivisionByZeroError : always one of them.
    """
    text = errors.get(status, f"kernel status {status}")
    if "division" in text:  # it names the op that the user called
        raise DivisionByZeroError(text)
    raise IndexRangeError(f"{op.name}(): {text}")


def _composite(self: Recipe) -> None:
    op, attrs = self.op, self.attrs
    if op.reduce is not None and _mapped_sum(self):
        return

    def first(*operands: Any) -> Any:
        from common.straight import straight_forward

        self.run = straight_forward(self) or general
        return self.run(*operands)

    def general(*operands: Any) -> Any:
        with np.errstate(all="ignore"):
            return op.forward(*operands, **attrs)  # type: ignore[misc]

    self.run = first


def _mapped_sum(self: Recipe) -> bool:
    """Let a composite that sums a function of its elements run as one kernel; whether there is one."""
    shape, dtype = self.forms[0]
    dims = self.attrs["dim"]
    if dtype.kind != "f" or any(form[1] != dtype for form in self.forms):
        return False
    kept = self.attrs["keepdim"]
    out_shape = tuple(1 if i in dims else n for i, n in enumerate(shape) if kept or i not in dims)
    found = kernels.mapped_sum(self.op.reduce, shape, dtype, dtype, dims, out_shape)
    if found is None:
        return False
    self.run, self.spec = found, Spec(out_shape, dtype)
    return True


_PREPARE: dict[str, Callable[[Recipe], None]] = {
    "elementwise": _elementwise,
    "reduction": _reduction,
    "view": _view,
    "kernel": _kernel,
    "composite": _composite,
}
