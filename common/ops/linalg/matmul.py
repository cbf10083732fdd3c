"""Matrix products: every one goes through the one gemm of `common.kernels.arrays.gemm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core import mode
from common.core.dispatch import Attrs, apply
from common.core.errors import DTypeError, ShapeError
from common.core.op import NativeCall
from common.core.shapes import broadcast_shapes, plain_shape
from common.core.sizes import hint, same, same_shape
from common.core.spec import Spec, numel
from common.core.unbroadcast import reshaped
from common.ops._define import composite, kernel
from common.ops._samples import away_from_zero, products, several
from common.ops.shape.view import expand, reshape, unsqueeze
from common.tensor.base import TensorBase
from common.tensor.record import record

FEW = 7
"""Rows, columns, and products of an element, of small matrices."""
MOST_PRODUCTS = 5 * FEW * 5
"""Products of all elements of one: the code grows with them."""


def _mm_spec(a: Spec, b: Spec, *, trans_a: bool, trans_b: bool) -> Spec:
    return _product_spec("mm", 2, a, b, trans_a, trans_b)


def _bmm_spec(a: Spec, b: Spec, *, trans_a: bool, trans_b: bool) -> Spec:
    return _product_spec("bmm", 3, a, b, trans_a, trans_b)


def _product_spec(name: str, ndim: int, a: Spec, b: Spec, trans_a: bool, trans_b: bool) -> Spec:
    for x in (a, b):
        if x.ndim != ndim:
            raise ShapeError(f"{name}: expected a {ndim}-D tensor, got {x.ndim}-D of shape {tuple(x.shape)}")
    _check_dtypes(name, a, b)
    m, k = a.shape[-2:][::-1] if trans_a else a.shape[-2:]
    k2, n = b.shape[-2:][::-1] if trans_b else b.shape[-2:]
    if not same(k, k2) and k != k2:
        raise ShapeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {k2}x{n})")
    if a.ndim == 3:
        m, n = _settled(m, n, k)
    if a.ndim == 3 and not same(a.shape[0], b.shape[0]) and a.shape[0] != b.shape[0]:
        raise ShapeError(f"bmm(): batch sizes differ: {a.shape[0]} and {b.shape[0]}")
    return Spec((*a.shape[:-2], m, n), a.dtype)


def _settled(m: Any, n: Any, k: Any) -> tuple[Any, Any]:
    """Rows and columns of a product of a batch. While a function is traced, sizes of small matrices become numbers:
    kernels are made for these, see `static.passes.written_out_products`.
    """
    if type(m) is type(n) is type(k) is int or not are_few(*map(hint, (m, n, k))):
        return m, n
    trace = mode.current_trace()
    if trace is None or not trace.replays:  # a graph of open sizes is not written again
        return m, n
    rows, columns, _ = map(int, (m, n, k))
    return rows, columns


def are_few(rows: int, columns: int, inner: int) -> bool:
    """Whether a product of matrices of these sizes may be written out."""
    least, most = min(rows, columns, inner), max(rows, columns, inner)
    return least > 0 and most <= FEW and rows * columns * inner <= MOST_PRODUCTS


def _check_dtypes(name: str, a: Any, b: Any) -> None:
    if a.dtype != b.dtype:
        raise DTypeError(f"{name}: expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")
    if a.dtype.kind == "b":
        raise DTypeError(f'"{name}" not implemented for bool; convert with .to(...), or use logical ops')


def _mm_native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    from common.kernels.arrays import gemm

    (a, _), (out,) = specs, outs
    batch = a.shape[0] if a.ndim == 3 else 1
    k = a.shape[-2] if attrs["trans_a"] else a.shape[-1]
    m, n = out.shape[-2:]
    return [gemm.call(out.dtype, batch, m, n, k, attrs["trans_a"], attrs["trans_b"])]


def _mm_oracle(a: np.ndarray, b: np.ndarray, trans_a: bool, trans_b: bool) -> np.ndarray:
    from common.kernels.arrays import gemm

    return gemm.oracle(a, b, trans_a, trans_b)


def _grad_a(g: Any, b: Any, trans_a: bool, trans_b: bool) -> Any:
    op = mm_ if g.ndim == 2 else bmm_
    return op(b, g, trans_a=trans_b, trans_b=True) if trans_a else op(g, b, trans_a=False, trans_b=not trans_b)


def _grad_b(g: Any, a: Any, trans_a: bool, trans_b: bool) -> Any:
    op = mm_ if g.ndim == 2 else bmm_
    return op(g, a, trans_a=True, trans_b=trans_a) if trans_b else op(a, g, trans_a=not trans_a, trans_b=False)


_RULES = (
    lambda g, b, trans_a, trans_b: _grad_a(g, b, trans_a, trans_b),
    lambda g, a, trans_a, trans_b: _grad_b(g, a, trans_a, trans_b),
)

mm_ = kernel(
    "mm", ("a", "b"), _mm_spec, _mm_native, _mm_oracle, _RULES, attrs=("trans_a", "trans_b"), product=True,
    samples=products(),
    doc="op(a) @ op(b) of matrices. d/da = g @ op(b)^T, d/db = op(a)^T @ g.",
)  # fmt: skip

bmm_ = kernel(
    "bmm", ("a", "b"), _bmm_spec, _mm_native, _mm_oracle, _RULES, attrs=("trans_a", "trans_b"), product=True,
    samples=products(2),
    doc="A matrix product per batch item, slice by slice.",
)  # fmt: skip


#: A product of matrices as they are.
PLAIN = Attrs(trans_a=False, trans_b=False)
_TRANSPOSED = Attrs(trans_a=False, trans_b=True)
_UNSAFE_VIEW = "UnsafeViewBackward0"
_UNSAFE_BATCH = Attrs(node_name=_UNSAFE_VIEW, trans_a=False, trans_b=False)


def _column(x: Any) -> Any:
    return reshape(x, (x.shape[0], 1))


dot_ = composite(
    "dot", lambda a, b: reshape(mm_(reshape(a, (1, a.shape[0])), _column(b), **PLAIN), ()),
    (lambda g, b: g * b, lambda g, a: g * a),
    inputs=("a", "b"), samples=several((5,), (5,)),
    doc="The sum of the products of two vectors' elements. d/da = g b, d/db = g a.",
)  # fmt: skip

mv_ = composite(
    "mv", lambda a, b: reshape(mm_(a, _column(b), **PLAIN), (a.shape[0],)),
    (lambda g, b: _column(g) * b,
     lambda g, a: reshape(mm_(a, _column(g), trans_a=True, trans_b=False), (a.shape[1],))),
    inputs=("a", "b"), samples=several((3, 4), (4,)),
    doc="A matrix times a vector. d/da = g b^T, d/db = a^T g.",
)  # fmt: skip


def _added_samples(rng: Any, dtype: Any) -> list[Any]:
    return [((away_from_zero(rng, (5,), dtype), *both), attrs) for both, attrs in products()(rng, dtype)]


addmm_ = composite(
    "addmm", lambda x, a, b, *, trans_a, trans_b: mm_(a, b, trans_a=trans_a, trans_b=trans_b) + x,
    (lambda g: g, *_RULES), inputs=("x", "a", "b"), samples=_added_samples,
    doc="x + op(a) @ op(b). d/dx = g summed, d/da = g @ op(b)^T, d/db = op(a)^T @ g.",
)  # fmt: skip


def mm(a: Any, b: Any) -> Any:
    """Product of a (m, k) and b (k, n).

    Parameters
    ----------
    a : (m, k)
    b : (k, n)

    Returns
    -------
    tensor : (m, n).

    Raises
    ------
    ShapeError : an operand is not a matrix, or the inner sizes differ.
    DTypeError : the dtypes differ.
    """
    return apply(mm_, (a, b), PLAIN)


def bmm(a: Any, b: Any) -> Any:
    """Products of a (batch, m, k) and b (batch, k, n), item by item.

    Parameters
    ----------
    a : (batch, m, k)
    b : (batch, k, n)

    Returns
    -------
    tensor : (batch, m, n).

    Raises
    ------
    ShapeError : an operand is not 3-D, or sizes differ.
    DTypeError : the dtypes differ.
    """
    return apply(bmm_, (a, b), PLAIN)


def matmul(a: Any, b: Any) -> Any:
    """Matrix product with PyTorch's rules for 1-D operands and batch dimensions.

    Parameters
    ----------
    a : (..., m, k) or (k,)
    b : (..., k, n) or (k,)

    Returns
    -------
    tensor : (..., m, n), without the dimensions that a 1-D operand does not have.

    Raises
    ------
    ShapeError : an operand is 0-d, or sizes do not fit.
    DTypeError : the dtypes differ.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.matmul(tw.ones(2, 3), tw.ones(3))
    tensor([3., 3.])
    """
    if a.ndim == 2 and b.ndim == 2:
        return apply(mm_, (a, b), PLAIN)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if b.ndim == 1:
        return dot(a, b) if a.ndim == 1 else _folded(mv, a, b)
    if a.ndim == 1:
        out = matmul(unsqueeze(a, 0), b)
        return reshaped(out, (*out.shape[:-2], out.shape[-1]), "SqueezeBackward4")
    if b.ndim == 2:
        return _folded(mm, a, b)
    lead = a.shape[:-2]
    if not same_shape(lead, b.shape[:-2]):
        lead = broadcast_shapes(lead, b.shape[:-2], op="matmul")
        a, b = (expand(x, (*lead, *x.shape[-2:])) for x in (a, b))
    if len(lead) == 1:
        return apply(bmm_, (a, b), _UNSAFE_BATCH)
    flat = [reshape(x, (numel(lead), *x.shape[-2:])) for x in (a, b)]
    return reshaped(bmm(*flat), (*lead, a.shape[-2], b.shape[-1]), _UNSAFE_VIEW)


def _folded(product: Any, a: Any, b: Any) -> Any:
    """A product whose left operand's leading dimensions are rows of one matrix."""
    if a.ndim == 2:
        return product(a, b)
    out = product(reshape(a, (numel(a.shape[:-1]), a.shape[-1])), b)
    return reshaped(out, (*a.shape[:-1], *out.shape[1:]), _UNSAFE_VIEW)


def dot(a: Any, b: Any) -> Any:
    """The sum of the products of two vectors' elements: a gemm of one row and one column.

    Parameters
    ----------
    a, b : (k,)

    Returns
    -------
    tensor : ()

    Raises
    ------
    ShapeError : an operand is not 1-D, or the sizes differ.
    DTypeError : the dtypes differ.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.dot(tw.tensor([2, 3]), tw.tensor([2, 1]))
    tensor(7)
    """
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    (k,), (other,) = a.shape, b.shape
    if not same(k, other) and k != other:
        raise ShapeError(
            f"inconsistent tensor size, expected tensor [{k}] and src [{other}] to have the same number of elements, "
            f"but got {k} and {other} elements respectively"
        )
    _check_dtypes("dot", a, b)
    return dot_(a, b)


def mv(a: Any, b: Any) -> Any:
    """The matrix a (m, k) times the vector b (k,).

    Parameters
    ----------
    a : (m, k)
    b : (k,)

    Returns
    -------
    tensor : (m,)

    Raises
    ------
    ShapeError : `a` is not 2-D, `b` not 1-D, or the sizes do not fit.
    DTypeError : the dtypes differ.
    """
    if a.ndim != 2 or b.ndim != 1:
        raise ShapeError(f"vector + matrix @ vector expected, got {b.ndim}, {a.ndim}")
    (m, k), (size,) = a.shape, b.shape
    if not same(k, size) and k != size:
        raise ShapeError(f"size mismatch, got input ({m}), mat ({m}x{k}), vec ({size})")
    _check_dtypes("mv", a, b)
    return mv_(a, b)


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """x (..., in) @ weight (out, in)^T + bias (out,).

    Parameters
    ----------
    x : (..., in)
    weight : (out, in), or (in,).
    bias : (out,), or (); or None.

    Returns
    -------
    tensor : (..., out), or (...).

    Raises
    ------
    ShapeError : the last size of `x` is not that of `weight`, one of them has no dimension, or `bias` does not expand
        to the product.
    DTypeError : the dtypes differ.
    """
    shape, form = plain_shape(x), plain_shape(weight)
    if not shape or len(form) < 2:
        if not shape or not form:
            raise ShapeError(
                f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {weight.ndim}D"
            )
        out = matmul(x, weight)
        if bias is None:
            return out
        _check_bias(bias.shape, out.shape)
        return out + bias
    rows = x if len(shape) == 2 else reshape(x, (numel(shape[:-1]), shape[-1]))
    run = record if isinstance(x, TensorBase) else apply  # what `apply` finds for tensors, a frame earlier
    if bias is None:
        out = run(mm_, (rows, weight), _TRANSPOSED)
    else:
        if plain_shape(bias) != form[:1]:
            _check_bias(bias.shape, (rows.shape[0], form[0]))
        out = run(addmm_, (bias, rows, weight), _TRANSPOSED)
    if len(shape) == 2:
        return out
    return reshaped(out, (*shape[:-1], form[0]), _UNSAFE_VIEW if bias is None else "ViewBackward0")


def _check_bias(shape: Any, target: Any) -> None:
    """A sum with more elements than the product would be no linear function's."""
    sizes = zip(shape[::-1], target[::-1])
    if len(shape) > len(target) or any(not same(m, 1) and m != n for m, n in sizes):
        raise ShapeError(f"linear: the bias of shape {tuple(shape)} does not expand to the product's {tuple(target)}")


__all__ = ["bmm", "dot", "linear", "matmul", "mm", "mv"]
