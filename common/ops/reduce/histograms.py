"""Histograms over given or equal bins, of one dimension and of several. They have no gradients, as in PyTorch."""

from __future__ import annotations

from typing import Any, NamedTuple

from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import integer, is_whole_number
from common.core.return_types import returned
from common.core.spec import numel
from common.ops.create.creation import zeros
from common.ops.create.spaced import linspace
from common.ops.index.gather import scatter_add
from common.ops.index.written_values import of_dtype, without_history
from common.ops.math.arithmetic import zeros_like
from common.ops.math.cast import clone
from common.ops.math.compare import eq, ge, le, logical_and, where
from common.ops.reduce.reductions import amax, amin
from common.ops.reduce.reductions import sum as total
from common.ops.shape.slices import narrow, select
from common.ops.shape.view import reshape
from common.ops.sort.sorting import searchsorted
from common.tensor.create import lift, operand


@returned("histogram")
class Histogram(NamedTuple):
    """The result of `histogram`.

    Attributes
    ----------
    hist : how much lies in each bin.
    bin_edges : one more than there are bins.
    """

    hist: Any
    bin_edges: Any


@returned("histogramdd")
class HistogramDD(NamedTuple):
    """The result of `histogramdd`.

    Attributes
    ----------
    hist : how much lies in each bin.
    bin_edges : of each dimension, one more than there are bins.
    """

    hist: Any
    bin_edges: Any


def _ends(op: str, x: Any, range: Any, position: int) -> tuple[Any, Any]:
    """The least and the greatest place of bins: those given, or those of the elements; never equal."""
    if range is not None:
        low, high = range[2 * position], range[2 * position + 1]
        if not low <= high:
            raise ArgumentError(f"{op}(): min should not exceed max, but got min: {low}, max: {high}")
        return (low - 0.5, high + 0.5) if low == high else (low, high)
    if numel(x.shape) == 0:
        return 0.0, 1.0
    low, high = amin(x), amax(x)
    alone = eq(low, high)
    return where(alone, low - 0.5, low), where(alone, high + 0.5, high)


def _edges(op: str, x: Any, bins: Any, range: Any, position: int) -> Any:
    if isinstance(bins, int) or is_whole_number(bins):
        count = integer(bins, op, "bins")
        if count <= 0:
            raise ArgumentError(f"{op}(): bins must be > 0, but got {count} for dimension {position}")
        low, high = _ends(op, x, range, position)
        return lift(linspace(low, high, count + 1, dtype=x.dtype))
    edges = operand(bins)
    if edges.ndim != 1 or edges.shape[0] < 1:
        raise ShapeError(f"{op}(): bins tensor should have one dimension and an edge, but got {list(edges.shape)}")
    if edges.dtype != x.dtype:
        raise DTypeError(f"{op}(): input tensor and bins tensors should have the same dtype, but got input with "
                         f"dtype {x.dtype} and bins with dtype {edges.dtype}")  # fmt: skip
    return without_history(edges)


def _counted(op: str, x: Any, edges: list[Any], weight: Any, density: bool) -> Any:
    """How much of (n, d) points lies in each bin."""
    inside, place = None, zeros_like(of_dtype(select(x, 1, 0), "int64"))
    for i, e in enumerate(edges):
        column, last = select(x, 1, i), e.shape[0] - 1
        there = logical_and(ge(column, select(e, 0, 0)), le(column, select(e, 0, last)))
        inside = there if inside is None else logical_and(inside, there)
        found = searchsorted(e, column, right=True) - 1
        found = where(eq(column, select(e, 0, last)), found * 0 + (last - 1), found)  # the last bin has its upper end
        place = place * last + found
    sizes = tuple(e.shape[0] - 1 for e in edges)
    counts = lift(zeros(numel(sizes), dtype=x.dtype))
    if weight is None:
        given = of_dtype(inside, x.dtype)
    else:
        if numel(weight.shape) != x.shape[0]:
            raise ShapeError(f"{op}(): if weight tensor is provided it should have the same shape as the input tensor "
                             f"excluding its innermost dimension, but got {list(weight.shape)}")  # fmt: skip
        if weight.dtype != x.dtype:
            raise DTypeError(f"{op}(): if weight tensor is provided, input tensor and weight tensor should have the "
                             f"same dtype, but got {x.dtype} and {weight.dtype}")  # fmt: skip
        given = where(inside, reshape(without_history(weight), (-1,)), 0)
    hist = reshape(scatter_add(counts, 0, where(inside, place, 0), given), sizes) if numel(sizes) != 0 else counts
    if not density:
        return hist
    hist = hist / total(hist)
    for i, e in enumerate(edges):
        widths = narrow(e, 0, 1, e.shape[0] - 1) - narrow(e, 0, 0, e.shape[0] - 1)
        hist = hist / reshape(widths, tuple(-1 if j == i else 1 for j, _ in enumerate(edges)))
    return hist


def histogram(x: Any, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False) -> Histogram:
    """How many elements lie in each bin; a bin has its lower edge, the last one its upper edge too.

    Parameters
    ----------
    x : (...), floating point.
    bins : how many bins of equal width; or their edges, ascending.
    range : the ends of equal bins, (least, greatest); those of the elements by default.
    weight : of the shape of `x`: what an element counts, 1 by default.
    density : divide by the total and by the widths of the bins, so that the integral is 1.

    Raises
    ------
    DTypeError : not floating point, or two dtypes.
    ShapeError : weights of another shape, edges that are no vector.
    ArgumentError : no bin, or a least end above the greatest.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.histogram(tw.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])
    """
    if x.dtype.kind != "f":
        raise DTypeError(f"histogram(): not implemented for {x.dtype}; convert with .to(...)")
    if weight is not None and tuple(weight.shape) != tuple(x.shape):
        raise ShapeError(f"histogram(): if weight tensor is provided it should have the same shape as the input "
                         f"tensor, but got input with shape {list(x.shape)}, and weight with shape "
                         f"{list(weight.shape)}")  # fmt: skip
    flat = reshape(without_history(x), (-1,))
    edges = clone(_edges("histogram", flat, bins, range, 0))
    return Histogram(_counted("histogram", reshape(flat, (-1, 1)), [edges], weight, density), edges)


def histogramdd(
    x: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> HistogramDD:
    """How many points lie in each bin of a grid; see `histogram`.

    Parameters
    ----------
    x : (..., d), floating point: points.
    bins : for each dimension how many bins, or edges; an int counts for all.
    range : least and greatest end of each dimension, one after the other.
    weight : (...) what a point counts, 1 by default.
    density : divide by the total and by the sizes of the bins.

    Returns
    -------
    hist, bin_edges : (bins, ...) and one tensor for each dimension.

    Raises
    ------
    DTypeError, ShapeError, ArgumentError : see `histogram`.
    """
    if x.ndim < 2:
        raise ShapeError("histogramdd(): input tensor should have at least 2 dimensions")
    if x.dtype.kind != "f":
        raise DTypeError(f"histogramdd(): not implemented for {x.dtype}; convert with .to(...)")
    d = int(x.shape[-1])
    several = [bins] * d if isinstance(bins, int) or is_whole_number(bins) else list(bins)
    if len(several) != d or (range is not None and len(range) != 2 * d):
        raise ArgumentError(f"histogramdd(): expected bins for {d} dimensions, and two ends of range for each")
    points = reshape(without_history(x), (-1, d))
    edges = [_edges("histogramdd", select(points, 1, i), b, range, i) for i, b in enumerate(several)]
    return HistogramDD(_counted("histogramdd", points, edges, weight, density), tuple(edges))


__all__ = ["histogram", "histogramdd"]
