"""Views under another shape, said in other words: like another tensor, flat, or with one dimension as several."""

from __future__ import annotations

from typing import Any

from common.core.dtypes import int64
from common.core.errors import IndexRangeError, ShapeError
from common.core.int_arguments import gathered, integers, normalize_dim
from common.core.spec import numel
from common.core.unbroadcast import sum_to
from common.ops.math.cast import to
from common.ops.shape.view import expand, reshape, transposed, view


def expand_as(x: Any, b: Any) -> Any:
    """`x` expanded to the shape of another tensor.

    Parameters
    ----------
    x : (...)
    b : (...), whose shape is taken.

    Raises
    ------
    ShapeError : a size other than 1 would have to change.
    """
    return expand(x, b.shape)


def reshape_as(x: Any, b: Any) -> Any:
    """`x` under the shape of another tensor.

    Parameters
    ----------
    x : (...)
    b : (...), whose shape is taken.

    Raises
    ------
    ShapeError : not as many elements.
    """
    return reshape(x, b.shape)


def view_as(x: Any, b: Any) -> Any:
    """Like `reshape_as`, but refuses to copy.

    Parameters
    ----------
    x : (...)
    b : (...), whose shape is taken.

    Raises
    ------
    ShapeError : not as many elements, or strides do not allow a view.
    """
    return view(x, b.shape)


def t(x: Any) -> Any:
    """Rows and columns of a matrix exchanged; what has fewer dimensions as it is.

    Parameters
    ----------
    x : (m, n), (n,) or ().

    Raises
    ------
    ShapeError : more than two dimensions.

    Examples
    --------
    >>> import dynamic as tw
    >>> tuple(tw.t(tw.tensor([[1, 2, 3]])).shape)
    (3, 1)
    """
    return transposed(x)


def is_same_size(x: Any, b: Any) -> bool:
    """Whether two tensors have the same sizes.

    Parameters
    ----------
    x, b : (...)
    """
    return tuple(x.shape) == tuple(b.shape)


def sum_to_size(x: Any, *sizes: Any, size: Any = None) -> Any:
    """The sum over the dimensions in which a shape would be repeated to broadcast to `x`.

    Parameters
    ----------
    x : (...)
    sizes, size : sizes of the result, or one tuple of them.

    Raises
    ------
    ShapeError : they do not broadcast to the shape of `x`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    if size is not None:
        sizes = gathered(sizes, size, "sum_to_size", "size")
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    target = integers(tuple(given), "sum_to_size", "size")
    ends = zip(reversed(target), reversed(x.shape), strict=False)
    if len(target) > x.ndim or any(not (isinstance(n, int) and n == 1) and n != m for n, m in ends):
        raise ShapeError(f"size {{{list(target)}}} is not expandable to size {{{list(x.shape)}}}.")
    if not target and x.ndim == 0 and x.dtype.kind in "biu":  # a sum, of one element
        return to(x, dtype=int64, x_dtype=x.dtype)
    return sum_to(x, target)


def ravel(x: Any) -> Any:
    """All elements in C order, with one dimension; a view where strides allow it.

    Parameters
    ----------
    x : (...)
    """
    return reshape(x, (numel(x.shape),))


def unflatten(x: Any, dim: int, sizes: Any) -> Any:
    """One dimension as several; a view.

    Parameters
    ----------
    x : (..., n, ...)
    dim : the dimension.
    sizes : the sizes that take its place, whose product is n; one may be -1.

    Raises
    ------
    ShapeError : no sizes, or another product.
    IndexRangeError : a dimension that does not exist.
    ArgumentError : something that is no int.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.unflatten(tw.zeros(2, 6), 1, (-1, 3)).shape
    torch.Size([2, 2, 3])
    """
    if x.ndim == 0:
        raise IndexRangeError(f"unflatten(): Dimension specified as {dim} but tensor has no dimensions")
    axis = normalize_dim(dim, x.ndim, "unflatten")
    parts = integers(sizes, "unflatten", "sizes")
    if not parts:
        raise ShapeError("unflatten: sizes must be non-empty")
    extent = x.shape[axis]
    inferred = [i for i, n in enumerate(parts) if isinstance(n, int) and n == -1]
    known = numel(tuple(n for i, n in enumerate(parts) if i not in inferred))
    wrong = len(inferred) > 1 or (inferred and (known == 0 or extent % known != 0)) or any(
        isinstance(n, int) and n < -1 for n in parts
    )
    if wrong or (not inferred and known != extent):
        raise ShapeError(
            f"unflatten: Provided sizes {list(parts)} don't multiply up to the size of dim {dim} ({extent}) in the "
            "input tensor"
        )
    if inferred:
        parts = tuple(extent // known if i in inferred else n for i, n in enumerate(parts))
    return reshape(x, (*x.shape[:axis], *parts, *x.shape[axis + 1 :]))


__all__ = ["expand_as", "is_same_size", "ravel", "reshape_as", "sum_to_size", "t", "unflatten", "view_as"]
