"""Products of several matrices, and products along a vector's components."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import number
from common.core.op import Op
from common.core.python_numbers import check_range
from common.core.sizes import same
from common.core.spec import numel
from common.ops._define import composite
from common.ops._samples import away_from_zero
from common.ops.create.creation import eye
from common.ops.linalg.contract import tensordot
from common.ops.linalg.matmul import matmul, mm
from common.ops.math.arithmetic import zeros_like
from common.ops.math.cast import clone
from common.ops.reduce.reductions import sum_
from common.ops.shape.cat import stack
from common.ops.shape.slices import select
from common.ops.shape.view import permute, reshape


def chain_matmul(*tensors: Any) -> Any:
    """The product of matrices, from left to right.

    PyTorch chooses the cheapest order by the sizes; here the order is the one that is written, so bits do not depend
    on sizes. Put the parentheses yourself where they matter.

    Parameters
    ----------
    tensors : (m, k), (k, l), ... as arguments of their own.

    Raises
    ------
    ShapeError : no matrix, one that is not 2-D, or sizes that do not fit.
    DTypeError : the dtypes differ.
    """
    if not tensors:
        raise ShapeError("chain_matmul(): Expected one or more matrices")
    for x in tensors:
        if x.ndim != 2:
            raise ShapeError(f"chain_matmul(): Tensor dimension is {x.ndim}, expected 2 instead.")
    product = tensors[0] if len(tensors) > 1 else clone(tensors[0])
    for x in tensors[1:]:
        product = mm(product, x)
    return product


def multi_dot(tensors: Sequence[Any]) -> Any:
    """The product of two or more matrices, from left to right; the first and the last may be vectors.

    As in `chain_matmul`, the order does not depend on sizes.

    Parameters
    ----------
    tensors : (m, k) or (k,), then (k, l), ..., at last (l, n) or (l,).

    Raises
    ------
    ShapeError : fewer than two, numbers of dimensions or sizes that do not fit.
    DTypeError : the dtypes differ.
    """
    if len(tensors) < 2:
        raise ShapeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, x in enumerate(tensors):
        if i in (0, len(tensors) - 1):
            if x.ndim not in (1, 2):
                which = "last" if i else "first"
                raise ShapeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {x.ndim}D")
        elif x.ndim != 2:
            raise ShapeError(f"multi_dot(): tensor {i} must be 2D but got {x.ndim}D")
    for i, (x, y) in enumerate(pairwise(tensors)):
        if not same(x.shape[-1], y.shape[0]) and x.shape[-1] != y.shape[0]:
            raise ShapeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(x.shape)} and {list(y.shape)} cannot be "
                "multiplied"
            )
    product = tensors[0]
    for x in tensors[1:]:
        product = matmul(product, x)
    return product


def matrix_power(x: Any, n: int) -> Any:
    """The product of n copies of each matrix.

    With z = x, x^2, x^4, ... by squaring, the result is the product, from left to right, of those z whose bit is set
    in n, the lowest bit first.

    Parameters
    ----------
    x : (..., m, m)
    n : an int; 0 gives identity matrices, a negative one powers of the inverse.

    Raises
    ------
    ShapeError : `x` is no batch of square matrices.
    ArgumentError : `n` is not an int of 64 bits.
    LinAlgError : `n` is negative, and a matrix singular.
    """
    n = number(n)
    if not isinstance(n, int) or isinstance(n, bool):
        raise ArgumentError(f"matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    check_range(n)
    if x.ndim < 2:
        raise ShapeError("matrix_power: The input tensor A must have at least 2 dimensions.")
    rows, columns = x.shape[-2:]
    if not same(rows, columns) and rows != columns:
        raise ShapeError(
            f"matrix_power: A must be batches of square matrices, but they are {rows} by {columns} matrices"
        )
    if n == 0:
        from common.tensor.create import lift

        return lift(eye(rows, dtype=x.dtype)) + zeros_like(x)
    if n < 0:
        from common.ops.linalg.solving import inv

        return matrix_power(inv(x), -n)
    if n == 1:
        return clone(x)
    result, power = None, x
    while n:
        n, bit = divmod(n, 2)
        if bit:
            result = power if result is None else matmul(result, power)
        if n:
            power = matmul(power, power)
    return result


def _blocks(a: Any, b: Any) -> Any:
    """All products as one loop over rows and columns, then the dimensions in their order: one copy."""
    ndim = a.ndim
    product = reshape(a, (numel(a.shape), 1)) * reshape(b, (1, numel(b.shape)))
    order = tuple(d for i in range(ndim) for d in (i, ndim + i))
    product = permute(reshape(product, (*a.shape, *b.shape)), order) if ndim else product
    return reshape(product, tuple(m * n for m, n in zip(a.shape, b.shape, strict=True)))


def _of_products(g: Any, a: Any, b: Any) -> Any:
    """The cotangents of all products, (elements of a, elements of b)."""
    (m, n), (p, q) = a.shape, b.shape
    return reshape(permute(reshape(g, (m, p, n, q)), (0, 2, 1, 3)), (m * n, p * q))


kron_ = composite(
    "kron", _blocks,
    (lambda g, a, b: reshape(
        sum_(_of_products(g, a, b) * reshape(b, (1, numel(b.shape))), dim=(1,), keepdim=False), a.shape),
     lambda g, a, b: reshape(
        sum_(_of_products(g, a, b) * reshape(a, (numel(a.shape), 1)), dim=(0,), keepdim=False), b.shape)),
    inputs=("a", "b"), reduce="kronecker", node_name="Kron", samples=lambda rng, dtype: [
        ((away_from_zero(rng, (3, 2), dtype), away_from_zero(rng, (2, 4), dtype)), {}),
    ],
    doc="The blocks a[i, j] b of two matrices. d/da and d/db: sums of g times the other one.",
)  # fmt: skip


def kron(a: Any, b: Any) -> Any:
    """The Kronecker product: the blocks ``a[i, j] * b``.

    Parameters
    ----------
    a, b : (...); dimensions of size 1 are put before the shorter shape.

    Returns
    -------
    tensor : every size is the product of the two sizes.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.kron(tw.tensor([1, 10]), tw.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    ndim = max(a.ndim, b.ndim)
    if a.ndim == b.ndim == 2 and a.dtype == b.dtype and a.dtype.kind == "f" and numel(a.shape) > 1 < numel(b.shape):
        return kron_(a, b)  # a gradient is a sum of several
    return _blocks(*(reshape(x, ((1,) * (ndim - x.ndim) + tuple(x.shape))) for x in (a, b)))


def _crossed(a: Any, b: Any, *, dim: int) -> Any:
    (a0, a1, a2), (b0, b1, b2) = ([select(x, dim, i) for i in range(3)] for x in (a, b))
    return stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], dim)


cross_: Op = composite(
    "cross", _crossed,
    (lambda g, b, dim: cross_(b, g, dim=dim),
     lambda g, a, dim: cross_(g, a, dim=dim)),
    inputs=("a", "b"), reduce="crossed", node_name="LinalgCross", samples=lambda rng, dtype: [
        (tuple(away_from_zero(rng, shape, dtype) for _ in range(2)), {"dim": dim})
        for shape, dim in (((4, 3), 1), ((3, 4), 0), ((2, 3, 2), 1), ((3,), 0))
    ],
    doc="a1 b2 - a2 b1 and so on, of vectors of 3 components. d/da = b x g, d/db = g x a.",
)  # fmt: skip


def cross(a: Any, b: Any, dim: Any = None) -> Any:
    """The cross product of vectors with 3 components: a1 b2 - a2 b1 and so on, each product and difference rounded.

    Parameters
    ----------
    a, b : (..., 3, ...), which broadcast.
    dim : the dimension of the components; by default the first of size 3.

    Raises
    ------
    ShapeError : the numbers of dimensions differ, or there are not 3 components.
    IndexRangeError : the dimension does not exist.
    """
    from common.core.int_arguments import normalize_dim

    if a.ndim != b.ndim:
        raise ShapeError("cross: inputs must have the same number of dimensions.")
    if dim is None:
        dim = next((i for i, n in enumerate(a.shape) if n == 3), None)
        if dim is None:
            raise ShapeError("no dimension of size 3 in input")
    axis = normalize_dim(dim, a.ndim, "cross")
    if a.ndim == 0 or a.shape[axis] != 3 or b.shape[axis] != 3:
        got = [x.shape[axis] if x.ndim else 0 for x in (a, b)]
        raise ShapeError(f"cross: inputs dimension {dim} must have length 3. Got {got[0]} and {got[1]}")

    # also in a trace in which sizes are equal by chance: gradients of the parts differ in signs of zeros
    if tuple(a.shape) == tuple(b.shape) and a.dtype == b.dtype and a.dtype.kind == "f":
        return cross_(a, b, dim=axis)
    return _crossed(a, b, dim=axis)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """input1^T weight[o] input2 for every output o, plus bias: input1 meets the weight first.

    Parameters
    ----------
    input1 : (..., in1)
    input2 : (..., in2), the leading dimensions of `input1`.
    weight : (out, in1, in2)
    bias : (out,), or None.

    Returns
    -------
    tensor : (..., out)

    Raises
    ------
    ShapeError : sizes that do not fit.
    DTypeError : the dtypes differ.
    """
    if weight.ndim != 3 or input1.ndim == 0:
        raise ShapeError(
            f"bilinear(): expected inputs of at least 1 dimension and a weight of 3, got {tuple(input1.shape)} and "
            f"{tuple(weight.shape)}"
        )
    if input1.ndim != input2.ndim:
        raise ShapeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    if input1.dtype != input2.dtype or input1.dtype != weight.dtype:
        raise DTypeError(
            f"bilinear(): expected operands of one dtype, but got {input1.dtype}, {input2.dtype} and {weight.dtype}"
        )
    for i, x in ((1, input1), (2, input2)):
        if not same(x.shape[-1], weight.shape[i]) and x.shape[-1] != weight.shape[i]:
            raise ShapeError(
                f"bilinear(): input{i} size does not match weight size: got {x.shape[-1]} but expected "
                f"{weight.shape[i]}"
            )
    for m, n in zip(input1.shape[:-1], input2.shape[:-1], strict=True):
        if not same(m, n) and m != n:
            raise ShapeError(f"bilinear(): input batch dimensions do not match: got {m} and {n}")
    halves = tensordot(input1, weight, ([-1], [1]))  # (..., out, in2)
    out = reshape(matmul(halves, reshape(input2, (*input2.shape, 1))), halves.shape[:-1])
    return out if bias is None else out + bias


__all__ = ["bilinear", "chain_matmul", "cross", "kron", "matrix_power", "multi_dot"]
