"""Whether any or all elements are true, and how many are."""

from __future__ import annotations

from typing import Any

from common.core.aliases import accept_numpy_names
from common.core.docstrings import sections_of
from common.core.dtypes import bool_, uint8
from common.core.int_arguments import flag, normalize_dims
from common.core.op import Op
from common.ops._define import reduction
from common.ops._samples import of_reduction
from common.ops.math.cast import to
from common.ops.reduce.reductions import sum_


def _of_truth(rng: Any, dtype: Any) -> list[Any]:
    return [((x > 0,), attrs) for (x,), attrs in of_reduction(rng, dtype)]


any_ = reduction("any", "max", (), samples=_of_truth, doc="Whether any element of a bool array is true.")
all_ = reduction("all", "min", (), samples=_of_truth, doc="Whether all elements of a bool array are true.")


def _truth_of(op: Op, x: Any, dim: Any, keepdim: bool) -> Any:
    """The reduction of the elements' truth values; uint8 gives uint8, as in PyTorch."""
    flags = x if x.dtype == bool_ else to(x, dtype=bool_, x_dtype=x.dtype)
    found = op(flags, dim=normalize_dims(dim, x.ndim, op.name), keepdim=flag(keepdim, op.name, "keepdim"))
    return to(found, dtype=uint8, x_dtype=bool_) if x.dtype == uint8 else found


@accept_numpy_names
def any(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether any element over `dim` is true, that is, not 0; nan is true. False for no elements.

    Parameters
    ----------
    x : (...); the result of uint8 is uint8, of all others bool.
    dim : the dimension, or several; all by default.
    keepdim : leave reduced dimensions with size 1.

    Raises
    ------
    IndexRangeError, ShapeError : a dimension that does not exist, or is named twice.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.any(tw.tensor([[0.0, 2.0], [0.0, 0.0]]), dim=1)
    tensor([ True, False])
    """
    return _truth_of(any_, x, dim, keepdim)


@sections_of(any)
@accept_numpy_names
def all(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether all elements over `dim` are true, that is, not 0; nan is true. True for no elements."""
    return _truth_of(all_, x, dim, keepdim)


@accept_numpy_names
def count_nonzero(x: Any, dim: Any = None) -> Any:
    """How many elements over `dim` are not 0, as int64; nan is not 0.

    Parameters
    ----------
    x : (...)
    dim : the dimension, or several; all by default.

    Raises
    ------
    IndexRangeError, ShapeError : a dimension that does not exist, or is named twice.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.count_nonzero(tw.tensor([[0, 2], [3, 4]]), dim=0)
    tensor([1, 2])
    """
    flags = x if x.dtype == bool_ else to(x, dtype=bool_, x_dtype=x.dtype)
    return sum_(flags, dim=normalize_dims(dim, x.ndim, "count_nonzero"), keepdim=False)


__all__ = ["all", "any", "count_nonzero"]
