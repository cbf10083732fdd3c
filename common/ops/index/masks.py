"""Masks: elements replaced where one holds, and the positions where it does.

What replaces elements keeps the shape and works in a trace. Functions that gather what a mask selects have results
whose size depends on the data; they run outside traces only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.dispatch import apply, known_attrs
from common.core.dtypes import bool_, uint8
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.python_numbers import require_held
from common.core.shapes import broadcast_shapes
from common.core.sizes import same, same_shape
from common.core.spec import numel
from common.ops._define import composite
from common.ops._samples import away_from_zero, truth
from common.ops.index.coordinates import index_get, index_set
from common.ops.index.written_values import number_like, same_dtype
from common.ops.math import compare
from common.ops.shape.view import expand, reshape
from common.ops.sort.data_dependent import elements, positions
from common.tensor.base import NUMBERS, TensorBase
from common.tensor.create import lift, operand

_KEEP = "keep the shape with where(mask, x, 0), x * mask or masked_fill(x, ~mask, 0), or call it outside"
_POSITIONS = "use the condition itself as a mask in where or masked_fill, or call it outside and pass the result in"


def _samples(rng: Any, dtype: Any) -> list[Any]:
    return [((away_from_zero(rng, (4, 3), dtype), truth(rng, mask, dtype), away_from_zero(rng, (), dtype)), {})
            for mask in ((4, 3), (3,), (2, 4, 3))]  # fmt: skip


filled_ = composite(
    "masked_fill", lambda x, mask, value: compare.where(mask, value, x),
    (lambda g, mask: compare.where(mask, 0, g), None, lambda g, mask: compare.where(mask, g, 0)),
    inputs=("x", "mask", "value"), samples=_samples,
    doc="value where mask holds, x elsewhere. d/dx = 1 elsewhere, d/dvalue = 1 where it holds, summed.",
)  # fmt: skip


def where(condition: Any, a: Any = None, b: Any = None) -> Any:
    """a where condition holds, b elsewhere; with a condition alone, the positions where it holds, see `nonzero`.

    Parameters
    ----------
    condition : (...) truth values.
    a, b : (...) tensors or numbers; all three broadcast. The gradient goes to the one that was selected, and the
        other's nan does not reach it.

    Raises
    ------
    ArgumentError : one of `a` and `b` is missing, or the integers of one do not hold the other, a number.
    DTypeError : with two operands, a condition that is neither bool nor uint8.
    TraceError : a condition alone, in a trace.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.where(tw.tensor([True, False]), tw.tensor([1.0, 2.0]), 0)
    tensor([1., 0.])
    """
    if a is None and b is None:
        return _positions(condition, "where", as_tuple=True)
    if a is None or b is None:
        raise ArgumentError("where(): expected a condition alone, or a condition and two operands")
    if getattr(condition, "dtype", bool_) not in (bool_, uint8):
        raise DTypeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}"
        )
    number, other = (a, b) if type(a) is int else (b, a)
    if type(number) is int and isinstance(other, TensorBase):
        require_held("where", other.dtype, number)
    if float in (type(a), type(b)) and isinstance(a, NUMBERS) and isinstance(b, NUMBERS):
        a = operand(float(a), b)  # numbers alone are of the default dtype
    return compare.where(condition, a, b)


def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    """`x` with a number where `mask` holds.

    Parameters
    ----------
    x : (...)
    mask : (...) bool; broadcasts with `x`.
    value : number or 0-d tensor, converted to the dtype of `x`.

    Raises
    ------
    DTypeError : `mask` is not bool, or the value is a float that the integers of `x` cannot hold.
    ShapeError : `value` has dimensions, or the shapes do not broadcast.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.masked_fill(tw.tensor([1.0, 2.0]), tw.tensor([True, False]), -1)
    tensor([-1.,  2.])
    """
    require_mask("masked_fill", mask)
    attrs = known_attrs(f"MaskedFillBackward{int(hasattr(value, 'ndim'))}")
    plain = x.dtype.kind == "f" and type(value) is float
    return apply(filled_, (x, mask, value if plain else number_like(value, x, "masked_fill")), attrs)


def masked_select(x: Any, mask: Any) -> Any:
    """The elements of `x` where `mask` holds, as one row in C order.

    Parameters
    ----------
    x : (...)
    mask : (...) bool; broadcasts with `x`.

    Raises
    ------
    DTypeError : `mask` is not bool.
    TraceError : in a trace, which cannot know the size of the result.
    """
    require_mask("masked_select", mask)
    chosen = elements(mask, "masked_select", _KEEP)
    shape = broadcast_shapes(x.shape, chosen.shape, op="masked_select()")
    return index_get(_spread(x, shape), (lift(_places(chosen, shape)),), 0)


def _spread(x: Any, shape: tuple[Any, ...]) -> Any:
    """`x` repeated to a shape, as one row."""
    repeated = x if same_shape(x.shape, shape) else expand(x, shape)
    return repeated if len(shape) == 1 else reshape(repeated, -1)


def _places(mask: np.ndarray, shape: tuple[Any, ...]) -> np.ndarray:
    """Where a mask holds in the row of the elements of a shape."""
    return np.flatnonzero(mask if mask.shape == shape else np.broadcast_to(mask, shape))


def masked_scatter(x: Any, mask: Any, src: Any) -> Any:
    """`x` with elements of `src`, in C order, where `mask` holds.

    Parameters
    ----------
    x : (...)
    mask : (...) bool; broadcasts with `x`.
    src : at least as many elements as `mask` has true ones, of the dtype of `x`.

    Raises
    ------
    DTypeError : `mask` is not bool, or source has another dtype than x.
    ShapeError : `src` has too few elements. A trace cannot count those of `mask`: there src has at least as many
        elements as the result; if fewer, TraceError.
    """
    require_mask("masked_scatter", mask)
    same_dtype("masked_scatter", x, src)
    if (found := _scattered(x, mask, src)) is not None:
        return found
    chosen = elements(mask, "masked_scatter", "give the source the shape of x and write where(mask, source, x)")
    shape = broadcast_shapes(x.shape, chosen.shape, op="masked_scatter()")
    places = _places(chosen, shape)
    taken = reshape(src, -1)
    if taken.shape[0] < places.size:
        raise ShapeError(
            f"masked_scatter(): expected source to have at least {places.size} elements, one per true element of mask; "
            f"it has {taken.shape[0]}"
        )
    return reshape(index_set(_spread(x, shape), taken[: places.size], (lift(places),), 0), shape)


def _scattered(x: Any, mask: Any, src: Any) -> Any:
    """The result of `masked_scatter` if `src` certainly has enough elements; None if it may have too few."""
    from common.ops.reduce.scans import cumsum

    shape = broadcast_shapes(x.shape, mask.shape, op="masked_scatter()")
    count, given = numel(shape), numel(src.shape)
    if not same(count, given) and count > given:
        return None
    chosen, row = _spread(mask, shape), reshape(src, -1)
    taken = index_get(row, (cumsum(chosen, 0) - 1,), 0)  # what others than the chosen ones take is nobody's
    return reshape(compare.where(chosen, taken, _spread(x, shape)), shape)


def nonzero(x: Any, *, as_tuple: bool = False) -> Any:
    """Positions of the elements that are not zero, in C order; nan is not zero.

    Parameters
    ----------
    x : (...)
    as_tuple : return one index tensor per dimension, as ``x[key]`` takes them.

    Returns
    -------
    tensor : (count, x.ndim) int64; or a tuple of (count,) int64.

    Raises
    ------
    TraceError : in a trace, which cannot know the size of the result.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nonzero(tw.tensor([0.0, 2.0, 3.0]))
    tensor([[1],
            [2]])
    """
    return _positions(x, "nonzero", as_tuple)


def argwhere(x: Any) -> Any:
    """Positions of the elements that are not zero, (count, x.ndim) int64; as `nonzero`.

    Parameters
    ----------
    x : (...)

    Raises
    ------
    TraceError : in a trace, which cannot know the size of the result.
    """
    return _positions(x, "argwhere", as_tuple=False)


def _positions(x: Any, function: str, as_tuple: bool) -> Any:
    array = elements(x, function, _POSITIONS)
    if as_tuple:
        return tuple(lift(places) for places in positions(array if array.ndim else array.reshape(1)))
    if array.ndim == 0:
        return lift(np.empty((int(bool(array)), 0), np.int64))
    return lift(positions(array, apart=False))


def require_mask(op: str, mask: Any) -> None:
    """Refuse what is not bool.

    Raises
    ------
    DTypeError : it is not.
    """
    if mask.dtype != bool_:
        raise DTypeError(f"{op}() only supports boolean masks, but got mask with dtype {mask.dtype}")


__all__ = ["argwhere", "masked_fill", "masked_scatter", "masked_select", "nonzero", "where"]
