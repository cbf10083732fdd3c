"""`nn.functional.pad`: a border of a constant, of reflections, of the edge, or of the other side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.dispatch import called
from common.core.errors import ArgumentError, ShapeError
from common.core.int_arguments import integers
from common.core.op import NativeCall, Op
from common.core.shapes import contiguous_strides
from common.core.spec import Spec, numel
from common.ops._define import composite, kernel
from common.ops._samples import join, one
from common.ops.create.creation import held
from common.ops.math.cast import clone
from common.ops.reduce.reductions import sum_
from common.ops.shape.cat import cat
from common.ops.shape.reorder import reverse_
from common.ops.shape.slices import slice_, sum_products
from common.ops.shape.view import expand_


def _native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import copying

    (x,), (out,) = specs, outs
    strides = contiguous_strides(out.shape)
    return [
        copying.fill(out.dtype, numel(out.shape), attrs["value"], (1,)),
        copying.scatter(out.dtype, x.shape, sum_products(attrs["starts"], strides), strides, (0, 1)),
    ]


def _oracle(x: np.ndarray, shape: Any, starts: Any, value: Any) -> np.ndarray:
    out = np.full(shape, value, x.dtype)
    out[tuple(slice(a, a + n) for a, n in zip(starts, x.shape, strict=True))] = x
    return out


constant_pad_: Op = kernel(
    "constant_pad_nd", ("x",), lambda x, *, shape, starts, value: Spec(tuple(shape), x.dtype), _native, _oracle,
    (lambda g, x_shape, starts: slice_(g, starts=starts, sizes=x_shape, steps=(1,) * len(starts)),),
    samples=join(one(2, 3, shape=(5, 4), starts=(1, 0), value=0.5), one(2, shape=(2,), starts=(0,), value=-0.0)),
    doc="x from `starts` on in an array of a number.", attrs=("shape", "starts", "value"),
    parts="pad",
)  # fmt: skip


def _part(x: Any, dim: int, start: Any, size: Any) -> Any:
    starts = tuple(start if i == dim else 0 for i in range(x.ndim))
    sizes = tuple(size if i == dim else n for i, n in enumerate(x.shape))
    return slice_(x, starts=starts, sizes=sizes, steps=(1,) * x.ndim)


def _crop(x: Any, pairs: Sequence[tuple[Any, Any]]) -> Any:
    """`x` without what negative pads take away."""
    starts = tuple(-a if a < 0 else 0 for a, _ in pairs)
    sizes = tuple(
        n - start + (b if b < 0 else 0) for n, start, (_, b) in zip(x.shape, starts, pairs, strict=True)
    )
    return slice_(x, starts=starts, sizes=sizes, steps=(1,) * x.ndim)


def _constant(x: Any, pairs: Sequence[tuple[Any, Any]], value: Any) -> Any:
    if any(a < 0 or b < 0 for a, b in pairs):
        x = _crop(x, pairs)
        if all(a <= 0 and b <= 0 for a, b in pairs):
            return called(clone(x), "ConstantPadNdBackward0")
    kept = [(0 if a < 0 else a, 0 if b < 0 else b) for a, b in pairs]
    shape = tuple(a + n + b for n, (a, b) in zip(x.shape, kept, strict=True))
    return constant_pad_(x, shape=shape, starts=tuple(a for a, _ in kept), value=value)


def _mirrored(x: Any, dim: int, size: Any, left: bool) -> Any:
    """What is reflected at one end."""
    return reverse_(_part(x, dim, 1 if left else x.shape[dim] - 1 - size, size), dims=(dim,))


def _unreflected(x: Any, *, dim: int, before: int, after: int) -> Any:
    n = x.shape[dim] - before - after
    total = _part(x, dim, before, n)
    for start, size, left in ((before + n, after, n - 1 - after), (0, before, 1)):
        turned = reverse_(_part(x, dim, start, size), dims=(dim,))
        pairs = [(left, n - left - size) if i == dim else (0, 0) for i in range(x.ndim)]
        total = total + (_constant(turned, pairs, 0) if size else 0.0)
    return total


def _border(x: Any, dim: int, before: Any, after: Any, mode: str) -> Any:
    """`x` with borders along one dimension; both are made of the whole of `x`, circular ones of the cropped part."""
    pairs = [(before, after) if i == dim else (0, 0) for i in range(x.ndim)]
    part = _crop(x, pairs) if before < 0 or after < 0 else x
    if mode == "circular":
        x = part
    n = x.shape[dim]

    def border(size: Any, left: bool) -> Any:
        if mode == "replicate":
            edge = _part(x, dim, 0 if left else n - 1, 1)
            return expand_(edge, new_shape=tuple(size if i == dim else m for i, m in enumerate(x.shape)))
        if mode == "circular":
            return _part(x, dim, n - size if left else 0, size)
        return _mirrored(x, dim, size, left)

    parts = [part]
    if before > 0:
        parts.insert(0, border(before, True))
    if after > 0:
        parts.append(border(after, False))
    return cat(parts, dim) if len(parts) > 1 else parts[0]


def _bordered(x: Any, befores: Any, afters: Any, mode: str) -> Any:
    for dim in reversed(range(x.ndim)):
        if befores[dim] or afters[dim]:
            x = _border(x, dim, befores[dim], afters[dim], mode)
    return x


def _unreflected_everywhere(g: Any, befores: Any, afters: Any) -> Any:
    for dim, (before, after) in enumerate(zip(befores, afters, strict=True)):
        if before or after:
            g = unreflected_(g, dim=dim, before=before, after=after)
    return g


def _unreplicated(g: Any, befores: Any, afters: Any) -> Any:
    """Each border's sum is added to its edge: that behind first, as a backward pass of the parts would do it."""
    for dim, (before, after) in enumerate(zip(befores, afters, strict=True)):
        n = g.shape[dim] - before - after
        total = _part(g, dim, before, n)
        for size, start, left in ((after, before + n, n - 1), (before, 0, 0)):
            if size:
                edge = sum_(_part(g, dim, start, size), dim=(dim,), keepdim=True)
                pairs = [(left, n - 1 - left) if i == dim else (0, 0) for i in range(g.ndim)]
                total = total + _constant(edge, pairs, 0)
        g = total
    return g


def _reflected_along(g: Any, dim: int, before: Any, after: Any) -> Any:
    befores, afters = (tuple(n if i == dim else 0 for i in range(g.ndim)) for n in (before, after))
    return reflected_(g, befores=befores, afters=afters)


unreflected_: Op = composite(
    "unreflected", _unreflected, (_reflected_along,), inputs=("x",),
    samples=join(one(6, dim=0, before=1, after=2), one(2, 6, 3, dim=1, before=2, after=0)), reduce="unreflected",
    doc="The gradient of reflected along a dimension: the sum of what each element has become.",
)  # fmt: skip

reflected_: Op = composite(
    "reflected", lambda x, *, befores, afters: _bordered(x, befores, afters, "reflect"), (_unreflected_everywhere,),
    inputs=("x",), samples=join(one(4, befores=(1,), afters=(2,)), one(2, 4, 3, befores=(0, 2, 0), afters=(0, 0, 0))),
    reduce="reflected", node_name="ReflectionPad",
    doc="x with reflections of elements before and after it in each dimension.",
)  # fmt: skip


replicated_: Op = composite(
    "replicated", lambda x, *, befores, afters: _bordered(x, befores, afters, "replicate"), (_unreplicated,),
    inputs=("x",), samples=join(one(3, befores=(1,), afters=(4,)), one(2, 4, 3, befores=(0, 2, 1), afters=(0, 0, 3))),
    reduce="replicated", node_name="ReplicationPad",
    doc="x with copies of its ends before and after it in each dimension. d/dx adds the sum of a border to its end.",
)  # fmt: skip


def _check(shape: Any, dim: int, before: Any, after: Any, mode: str) -> None:
    n = shape[dim]
    if mode == "reflect" and (before >= n or after >= n):
        raise ShapeError(
            "Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at dimension {dim} of input {list(shape)}"
        )
    if mode == "circular" and (before < 0 or after < 0):
        n = n + (before if before < 0 else 0) + (after if after < 0 else 0)
        if n < 0:
            raise ShapeError(f"Negative padding value is resulting in an empty dimension: ({before}, {after}) at "
                             f"dimension {dim} of input {list(shape)}")  # fmt: skip
    if mode == "circular" and (before > n or after > n):
        raise ShapeError(f"Padding value causes wrapping around more than once: ({before}, {after}) for size {n}")
    if mode == "replicate" and n == 0 and (before > 0 or after > 0):
        raise ShapeError(f"pad(): there is no edge to replicate at dimension {dim} of input {list(shape)}")


def constant_pad_nd(x: Any, pad: Any, value: float = 0) -> Any:
    """`nn.functional.pad` with one value.

    Parameters
    ----------
    x, pad, value : see `nn.functional.pad`.
    """
    return _padded(x, pad, "constant", value)


def pad(x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    """`x` with elements added at the ends of its last dimensions, or taken away where a number is negative.

    Parameters
    ----------
    x : (...)
    pad : numbers in pairs, before and after, for the last dimension first: ``(left, right, top, bottom, ...)``.
    mode : "constant"; "reflect" without repeating the edge; "replicate", the edge; "circular", the other side.
    value : the constant; 0 by default.

    Raises
    ------
    ShapeError : an odd number of numbers, more pairs than dimensions, more taken away than there is, or more to
        be reflected or wrapped around than there is.
    ArgumentError : another mode, or a value for one that has none.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.functional.pad(tw.tensor([1, 2, 3]), (2, 1))
    tensor([0, 0, 1, 2, 3, 0])
    >>> tw.nn.functional.pad(tw.tensor([1, 2, 3]), (2, -1), mode="reflect")
    tensor([3, 2, 1, 2])
    """
    return _padded(x, pad, mode, value)


def _padded(x: Any, pad: Any, mode: str, value: Any) -> Any:
    numbers = integers(pad, "pad", "pad")
    if len(numbers) % 2:
        raise ShapeError(f"Padding length must be divisible by 2, got {len(numbers)}: {list(numbers)}")
    if len(numbers) > 2 * x.ndim:
        raise ShapeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(numbers)} and input of dimension {x.ndim}"
        )
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise ArgumentError(f"Unrecognised padding mode {mode!r}: use constant, reflect, replicate or circular")
    given = [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)][::-1]
    pairs = [(0, 0)] * (x.ndim - len(given)) + given
    for dim, (n, (before, after)) in enumerate(zip(x.shape, pairs, strict=True)):
        if isinstance(before, int) and isinstance(after, int) and before == after == 0:
            continue
        rest = n + (before if before < 0 else 0) + (after if after < 0 else 0)
        if (before < 0 or after < 0) and rest < 0:
            raise ShapeError(
                f"The input size {n}, plus negative padding {before} and {after}, resulted in a negative output size, "
                f"which is invalid. Check dimension {dim} of your input."
            )
        _check(x.shape, dim, before, after, mode)
    if mode == "constant":
        number = 0 if value is None else value
        if not isinstance(number, (bool, int, float)):
            number = _number(number)
        if x.dtype.kind in "iu":
            number = held(number, x.dtype, "pad")
        return _constant(x, pairs, number)
    if value is not None and value != 0:
        raise ArgumentError(f'Padding mode "{mode}" doesn\'t take in value argument, got {value!r}')
    op = {"reflect": reflected_, "replicate": replicated_}.get(mode)
    if op is not None and all(before >= 0 and after >= 0 for before, after in pairs) and any(map(any, pairs)):
        return op(x, befores=tuple(a for a, _ in pairs), afters=tuple(b for _, b in pairs))
    y = x
    for dim in reversed(range(x.ndim)):
        before, after = pairs[dim]
        if mode == "reflect" and before >= 0 and after >= 0 and (before or after):
            y = _reflected_along(y, dim, before, after)
        else:
            y = _border(y, dim, before, after, mode)
    return clone(y) if all(before <= 0 and after <= 0 for before, after in pairs) else y


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"pad(): value must be a number, got {type(value).__name__}") from None


__all__ = ["constant_pad_nd", "pad"]
