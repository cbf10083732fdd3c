"""Copies of views: PyTorch's functions whose names end in `_copy`."""

from __future__ import annotations

from typing import Any

from common.core.int_arguments import normalize_dim
from common.ops.math.cast import clone
from common.ops.shape import diagonal, named_splits, slices, split, unfold, view


def alias_copy(x: Any) -> Any:
    """A copy.

    Parameters
    ----------
    x : (...)
    """
    return clone(x)


def detach(x: Any) -> Any:
    """The same elements, in the same memory, of which nothing is differentiated.

    Parameters
    ----------
    x : (...)
    """
    return x.detach()


def detach_copy(x: Any) -> Any:
    """A copy of which nothing is differentiated.

    Parameters
    ----------
    x : (...)
    """
    return clone(x.detach())


def diagonal_copy(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A copy of what `diagonal` shows.

    Parameters
    ----------
    x, offset, dim1, dim2 : see `diagonal`.
    """
    return clone(diagonal.diagonal(x, offset, dim1, dim2))


def expand_copy(x: Any, size: Any, *, implicit: bool = False) -> Any:
    """A copy of what `expand` shows.

    Parameters
    ----------
    x : (...)
    size : see `expand`.
    implicit : accepted; it changes nothing.
    """
    return clone(view.expand(x, size))


def narrow_copy(x: Any, dim: int, start: int, length: int) -> Any:
    """A copy of what `narrow` shows.

    Parameters
    ----------
    x, dim, start, length : see `narrow`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.narrow_copy(tw.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    return clone(slices.narrow(x, dim, start, length))


def permute_copy(x: Any, dims: Any) -> Any:
    """A copy of what `permute` shows.

    Parameters
    ----------
    x, dims : see `permute`.
    """
    return clone(view.permute(x, dims=dims))


def select_copy(x: Any, dim: int, position: int) -> Any:
    """A copy of what `select` shows.

    Parameters
    ----------
    x, dim, position : see `select`.
    """
    return clone(slices.select(x, dim, position))


def slice_copy(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """A copy of ``x[start:end:step]`` along one dimension.

    Parameters
    ----------
    x : (...)
    dim : the dimension.
    start, end, step : as in a Python slice.
    """
    axis = normalize_dim(dim, x.ndim, "slice_copy")
    return clone(x[(slice(None),) * axis + (slice(start, end, step),)])


def split_copy(x: Any, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    """Copies of what `split` shows.

    Parameters
    ----------
    x, split_size, dim : see `split`.
    """
    return tuple(clone(part) for part in split.split(x, split_size, dim))


def split_with_sizes_copy(x: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """Copies of what `split_with_sizes` shows.

    Parameters
    ----------
    x, split_sizes, dim : see `split_with_sizes`.
    """
    return tuple(clone(part) for part in named_splits.split_with_sizes(x, split_sizes, dim))


def squeeze_copy(x: Any, dim: Any = None) -> Any:
    """A copy of what `squeeze` shows.

    Parameters
    ----------
    x, dim : see `squeeze`.
    """
    return clone(view.squeeze(x, dim))


def t_copy(x: Any) -> Any:
    """A copy of what `t` shows.

    Parameters
    ----------
    x : (m, n), (n,) or ().
    """
    return clone(view.transposed(x))


def transpose_copy(x: Any, dim0: int, dim1: int) -> Any:
    """A copy of what `transpose` shows.

    Parameters
    ----------
    x, dim0, dim1 : see `transpose`.
    """
    return clone(view.transpose(x, dim0, dim1))


def unbind_copy(x: Any, dim: int = 0) -> tuple[Any, ...]:
    """Copies of what `unbind` shows.

    Parameters
    ----------
    x, dim : see `unbind`.
    """
    return tuple(clone(part) for part in split.unbind(x, dim))


def unfold_copy(x: Any, dimension: int, size: int, step: int) -> Any:
    """A copy of the windows that the method `unfold` shows.

    Parameters
    ----------
    x : (..., n, ...)
    dimension, size, step : see `Tensor.unfold`.
    """
    return clone(unfold.unfold(x, dimension, size, step))


def unsqueeze_copy(x: Any, dim: int) -> Any:
    """A copy of what `unsqueeze` shows.

    Parameters
    ----------
    x, dim : see `unsqueeze`.
    """
    return clone(view.unsqueeze(x, dim))


def view_copy(x: Any, size: Any) -> Any:
    """A copy of what `view` shows; or of the tensor in another dtype.

    Parameters
    ----------
    x : (...)
    size : the sizes, or a dtype.
    """
    return clone(view.reshape(x, size)) if isinstance(size, (tuple, list, int)) else clone(x.view(size))


__all__ = [
    "alias_copy", "detach", "detach_copy", "diagonal_copy", "expand_copy", "narrow_copy", "permute_copy", "select_copy",
    "slice_copy", "split_copy", "split_with_sizes_copy", "squeeze_copy", "t_copy", "transpose_copy", "unbind_copy",
    "unfold_copy", "unsqueeze_copy", "view_copy",
]  # fmt: skip
