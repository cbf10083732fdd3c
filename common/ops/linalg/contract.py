"""Contractions of two operands: sums over products.

A contraction is one gemm, or, where nothing is left on either side of the summed dimensions, a product of elements and
a sum. Which one, and the order of dimensions inside, follow from the dimensions' names alone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from common.core.dispatch import apply
from common.core.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from common.core.int_arguments import integers, normalize_dim, number
from common.core.op import REGISTRY
from common.core.sizes import same
from common.core.spec import numel
from common.evaluate.specialise import remembered
from common.ops.linalg.matmul import bmm_, mm_
from common.ops.reduce.reductions import sum_
from common.ops.shape.view import permute_, reshape

Labels = tuple[Any, ...]


def contract(
    a: Any, la: Labels, b: Any, lb: Labels, keep: Collection[Any], output: Labels = ()
) -> tuple[Any, Labels]:
    """Multiply two operands and sum over the dimensions that nothing else needs.

    Parameters
    ----------
    a, b : operands with one label per dimension, no label twice in an operand; equal labels have equal sizes, or a
        size of 1.
    la, lb : labels.
    keep : labels that the result, or an operand that comes later, has.
    output : the order in which the dimensions are wanted. So they lie in memory, as in PyTorch, unless a product of
        matrices has them in another one.

    Returns
    -------
    tensor, labels : of the product. In this order: a dimension that only one operand has and nobody keeps is summed
        before the product; then what both have and nobody keeps is the inner dimension of one gemm per element of
        what both have and somebody keeps.
    """
    a, la, b, lb = _without_ones(a, la, b, lb)
    a, la = _sum_but(a, la, {*keep, *lb})
    b, lb = _sum_but(b, lb, {*keep, *la})
    inner = tuple(x for x in la if x in lb and x not in keep)
    batch = tuple(x for x in la if x in lb and x in keep)
    left = tuple(x for x in la if x not in lb)
    right = tuple(x for x in lb if x not in la)
    sizes = {**dict(zip(lb, b.shape, strict=True)), **dict(zip(la, a.shape, strict=True))}
    if not inner or (batch and not left and not right):
        labels = *la, *right
        product = _aligned(a, la, labels, sizes) * _aligned(b, lb, labels, sizes)
        if {*labels} == {*output}:
            return product if labels == output else REGISTRY["clone"](ordered(product, labels, output)), output
        return _sum_but(product, labels, keep)
    if left and (*batch, *right, *left) == output:
        a, la, left, b, lb, right = b, lb, right, a, la, left
    # a transposition that the operand's own order of dimensions amounts to costs nothing as a flag of gemm
    trans_a, trans_b = la == (*batch, *inner, *left), lb == (*batch, *right, *inner)
    first = (*batch, *inner, *left) if trans_a else (*batch, *left, *inner)
    second = (*batch, *right, *inner) if trans_b else (*batch, *inner, *right)
    extent = {name: numel(tuple(sizes[x] for x in group)) for name, group in
              (("batch", batch), ("left", left), ("right", right), ("inner", inner))}  # fmt: skip
    lead = (extent["batch"],) if batch else ()
    rows, k, columns = extent["left"], extent["inner"], extent["right"]
    a = reshape(ordered(a, la, first), (*lead, *((k, rows) if trans_a else (rows, k))))
    b = reshape(ordered(b, lb, second), (*lead, *((columns, k) if trans_b else (k, columns))))
    product = apply(bmm_ if batch else mm_, (a, b), {"trans_a": trans_a, "trans_b": trans_b})
    labels = (*batch, *left, *right)
    return reshape(product, tuple(sizes[x] for x in labels)), labels


def _without_ones(a: Any, la: Labels, b: Any, lb: Labels) -> tuple[Any, Labels, Any, Labels]:
    """The operands without dimensions of size 1 that the other has with another size."""
    first, second = dict(zip(la, a.shape, strict=True)), dict(zip(lb, b.shape, strict=True))
    differing = [x for x in la if x in second and not same(first[x], second[x]) and first[x] != second[x]]
    for x in differing:
        if first[x] == 1:
            la = tuple(y for y in la if y != x)
        else:
            lb = tuple(y for y in lb if y != x)
    if differing:
        a, b = reshape(a, tuple(first[x] for x in la)), reshape(b, tuple(second[x] for x in lb))
    return a, la, b, lb


def _sum_but(x: Any, labels: Labels, keep: Collection[Any]) -> tuple[Any, Labels]:
    """The sum over all dimensions that are not in `keep`, in the dtype of `x`."""
    gone = tuple(i for i, label in enumerate(labels) if label not in keep)
    if not gone:
        return x, labels
    total = sum_(x, dim=gone, keepdim=False)
    return total if total.dtype == x.dtype else total.to(x.dtype), tuple(y for y in labels if y in keep)


def ordered(x: Any, labels: Labels, wanted: Labels) -> Any:
    """`x` with its dimensions in the order `wanted`."""
    order = tuple(labels.index(label) for label in wanted)
    return x if order == tuple(range(len(labels))) else permute_(x, dims=order)


def _aligned(x: Any, labels: Labels, wanted: Labels, sizes: dict[Any, Any]) -> Any:
    """`x` with the dimensions `wanted`, of size 1 where it has none."""
    x = ordered(x, labels, tuple(label for label in wanted if label in labels))
    return reshape(x, tuple(sizes[label] if label in labels else 1 for label in wanted))


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Sum over products along pairs of dimensions: one gemm.

    Parameters
    ----------
    a, b : (...)
    dims : how many of the last dimensions of `a` meet as many first ones of `b`; or two lists of dimensions.

    Returns
    -------
    tensor : the other dimensions of `a`, then those of `b`.

    Raises
    ------
    ShapeError : sizes that differ (1 broadcasts), too many dimensions, lists of unequal lengths.
    IndexRangeError : a dimension that does not exist.
    DTypeError : the dtypes differ.

    Examples
    --------
    >>> import dynamic as tw
    >>> a = tw.arange(6).reshape(2, 3)
    >>> tw.tensordot(a, a, dims=([1], [1]))
    tensor([[ 5, 14],
            [14, 50]])
    """
    dims = number(dims)
    if isinstance(dims, int):
        if dims < 0:
            raise ShapeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = [*range(a.ndim - dims, a.ndim)], [*range(dims)]
    else:
        if not isinstance(dims, (tuple, list)) or len(dims) != 2:
            raise ArgumentError(f"tensordot(): argument 'dims' must be an int or a pair of lists, got {dims!r}")
        first, second = ([*integers(d, "tensordot", "dims")] for d in dims)
    if len(first) != len(second):
        raise ShapeError("both dimension lists should have same length")
    if a.dtype != b.dtype:
        raise DTypeError(f"tensordot: both inputs should have same dtype, but got {a.dtype} and {b.dtype}")
    return _over(a, b, tuple(first), tuple(second))


@remembered
def _over(a: Any, b: Any, first: tuple[int, ...], second: tuple[int, ...]) -> Any:
    """`tensordot` over pairs of dimensions."""
    la, lb = [("a", i) for i in range(a.ndim)], [("b", i) for i in range(b.ndim)]
    for position, (i, j) in enumerate(zip(first, second, strict=True)):
        i, j = _dimension(i, a.ndim), _dimension(j, b.ndim)
        m, n = a.shape[i], b.shape[j]
        if la[i][0] == "k" or lb[j][0] == "k":
            raise ShapeError(f"tensordot: dim {i if la[i][0] == 'k' else j} appears multiple times in the list of dims")
        if not same(m, n) and m != n and m != 1 and n != 1:
            raise ShapeError(
                f"contracted dimensions need to match, but first has size {m} in dim {i} and second has size {n} "
                f"in dim {j}"
            )
        la[i] = lb[j] = ("k", position)
    keep = tuple(x for x in (*la, *lb) if x[0] != "k")
    return contract(a, tuple(la), b, tuple(lb), keep)[0]


def _dimension(dim: int, ndim: int) -> int:
    if ndim == 0:
        raise IndexRangeError(f"tensordot: dimension {dim} of a tensor without dimensions")
    return normalize_dim(dim, ndim, "tensordot")


def inner(a: Any, b: Any) -> Any:
    """Sums of products over the last dimensions; the product if an operand is 0-d.

    Parameters
    ----------
    a : (..., k)
    b : (..., k)

    Returns
    -------
    tensor : the leading dimensions of `a`, then those of `b`.

    Raises
    ------
    ShapeError : the last sizes differ.
    DTypeError : the dtypes differ.
    """
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.dtype != b.dtype:
        raise DTypeError(f"inner: both inputs should have same dtype, but got {a.dtype} and {b.dtype}")
    if not same(a.shape[-1], b.shape[-1]) and a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(a.shape)} and {list(b.shape)}"
        )
    return tensordot(a, b, ([-1], [-1]))


def outer(a: Any, b: Any) -> Any:
    """All products of an element of a and one of b.

    Parameters
    ----------
    a : (m,)
    b : (n,)

    Returns
    -------
    tensor : (m, n)

    Raises
    ------
    ShapeError : an operand is not 1-D.
    """
    for x, name in ((a, "self"), (b, "vec2")):
        if x.ndim != 1:
            raise ShapeError(f"outer: Expected 1-D argument {name}, but got {x.ndim}-D")
    return reshape(a, (a.shape[0], 1)) * b


__all__ = ["inner", "outer", "tensordot"]
