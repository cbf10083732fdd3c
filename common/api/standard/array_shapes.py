"""Shapes, as the array API standard changes them."""

from __future__ import annotations

from typing import Any

from common.api.standard.array_elementwise import promoted
from common.api.standard.array_reductions import axes_of
from common.core import shapes
from common.core.errors import ArgumentError
from common.core.int_arguments import integers, members
from common.ops import functional
from common.tensor.create import operand

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis",
           "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack"]  # fmt: skip


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """Tensors in the shape in which they meet.

    Parameters
    ----------
    arrays : tensors whose shapes broadcast.
    """
    return list(functional.broadcast_tensors(*map(operand, arrays)))


def broadcast_shapes(*given: tuple[int, ...]) -> tuple[int, ...]:
    """The shape in which shapes meet.

    Parameters
    ----------
    given : tuples of sizes.

    Raises
    ------
    ShapeError : they do not broadcast.
    ArgumentError : what is given is no tuple of ints.
    """
    given = tuple(integers(sizes, "broadcast_shapes", "given") for sizes in given)
    return tuple(shapes.broadcast_shapes(*given, op="broadcast_shapes"))


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Any:
    """A tensor in a larger shape, without a copy.

    Parameters
    ----------
    x : (...).
    shape : of the result.
    """
    return functional.broadcast_to(operand(x, x), shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Tensors joined along an axis.

    Parameters
    ----------
    arrays : tuple or list of tensors.
    axis : along which; None for all elements in one dimension.
    """
    found = promoted(*members(arrays, "concat", "arrays"))
    if axis is None:
        found, axis = [functional.reshape(x, (-1,)) for x in found], 0
    return functional.cat(found, axis)


def expand_dims(x: Any, /, axis: Any = 0) -> Any:
    """New dimensions of size 1.

    Parameters
    ----------
    x : (...).
    axis : their place in the result, or a tuple of places.
    """
    x = operand(x, x)
    many = axis if isinstance(axis, tuple) else (axis,)
    for place in sorted(axes_of(many, len(x.shape) + len(many))):
        x = functional.unsqueeze(x, place)
    return x


def flip(x: Any, /, *, axis: Any = None) -> Any:
    """Elements in reversed order.

    Parameters
    ----------
    x : (...).
    axis : None for all, an int or a tuple.
    """
    x = operand(x, x)
    return functional.flip(x, axes_of(axis, len(x.shape)))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Dimensions at other places.

    Parameters
    ----------
    x : (...).
    source, destination : ints, or tuples of them.
    """
    return functional.movedim(operand(x), source, destination)


def permute_dims(x: Any, /, axes: tuple[int, ...]) -> Any:
    """Dimensions in another order.

    Parameters
    ----------
    x : (...).
    axes : all of its dimensions, as they are to follow.
    """
    return functional.permute(operand(x, x), axes)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Each element several times.

    Parameters
    ----------
    x : (...).
    repeats : how often: an int, or one for each element along the axis, (n).
    axis : along which; None for all elements in one dimension.
    """
    return functional.repeat_interleave(operand(x, x), repeats, axis)


def reshape(x: Any, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Any:
    """The elements in another shape.

    Parameters
    ----------
    x : (...).
    shape : of the result; one size may be -1.
    copy : True for memory of its own, False to refuse to copy, None for whatever is needed.

    Raises
    ------
    ShapeError : another number of elements, or `copy` is False and a copy is needed.
    """
    x = operand(x, x)
    if copy is False:
        return functional.view(x, shape)
    y = functional.reshape(x, shape)
    return functional.clone(y) if copy else y


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Elements moved round.

    Parameters
    ----------
    x : (...).
    shift : by how many places: an int, or a tuple, one for each axis.
    axis : along which; None for all elements in one dimension.
    """
    x = operand(x, x)
    if isinstance(axis, tuple) and not isinstance(shift, tuple):
        shift = (shift,) * len(axis)
    return functional.clone(x) if axis is not None and not len(x.shape) else functional.roll(x, shift, axis)


def squeeze(x: Any, /, axis: Any) -> Any:
    """Without dimensions of size 1.

    Parameters
    ----------
    x : (...).
    axis : an int or a tuple.

    Raises
    ------
    ArgumentError : one of them has another size.
    """
    x = operand(x, x)
    axes = axes_of(axis, len(x.shape))
    for i in axes:
        if x.shape[i] != 1:
            raise ArgumentError(f"squeeze(): dimension {i} has size {x.shape[i]}, not 1")
    return functional.squeeze(x, tuple(axes))


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Tensors of one shape side by side.

    Parameters
    ----------
    arrays : tuple or list of tensors.
    axis : place of the new dimension.
    """
    return functional.stack(promoted(*members(arrays, "stack", "arrays")), axis)


def tile(x: Any, repetitions: tuple[int, ...], /) -> Any:
    """A tensor several times, side by side.

    Parameters
    ----------
    x : (...).
    repetitions : how often, for each dimension from the last.
    """
    return functional.tile(operand(x, x), repetitions)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The parts of a tensor along an axis.

    Parameters
    ----------
    x : (..., n, ...).
    axis : along which.
    """
    return tuple(functional.unbind(operand(x), axis))
