"""A product added to something: ``beta * input + alpha * product``, every step an exactly rounded op of its own."""

from __future__ import annotations

from typing import Any

from common.core.dispatch import apply, called
from common.core.errors import ShapeError
from common.core.sizes import same, same_shape
from common.ops.linalg.contract import outer
from common.ops.linalg.matmul import PLAIN, addmm_, bmm, mm, mv
from common.ops.math.blend import addcmul
from common.ops.math.cast import to
from common.ops.reduce.reductions import sum_
from common.ops.shape.view import broadcast_to, reshape


def _add(name: str, input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta * input + alpha * product; with beta 0, what `input` holds does not count, nan included.

    Of integers, beta and alpha are rounded towards zero, as in PyTorch.
    """
    if not same_shape(input.shape, product.shape):
        if input.ndim > product.ndim:
            raise ShapeError(
                f"{name}: input of shape {tuple(input.shape)} does not expand to {tuple(product.shape)}: it has more "
                "dimensions"
            )
        broadcast_to(input, product.shape)  # raises; the sum below repeats by itself
    if input.dtype.kind in "iu" and product.dtype.kind in "iu":
        beta, alpha = (int(k) if isinstance(k, float) else k for k in (beta, alpha))
    if input.dtype.kind != "f" == product.dtype.kind:
        input = to(input, dtype=product.dtype, x_dtype=input.dtype)  # whole numbers would wrap before the sum
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return (input if beta == 1 else input * beta) + product


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * (mat1 @ mat2); accumulation is a separate, exactly rounded add.

    Parameters
    ----------
    input : broadcasts to (m, n).
    mat1 : (m, k)
    mat2 : (k, n)
    beta, alpha : numbers. With beta 0 the values of `input` do not count, nan included.

    Raises
    ------
    ShapeError, DTypeError : see `mm`; or `input` does not broadcast to (m, n).
    """
    if beta == alpha == 1 and input.dtype == mat1.dtype and _expands(input.shape, (*mat1.shape[:1], *mat2.shape[1:])):
        return apply(addmm_, (input, mat1, mat2), PLAIN)
    return called(_add("addmm", input, mm(mat1, mat2), beta, alpha), "AddmmBackward0")


def _expands(shape: Any, target: Any) -> bool:
    """Whether a tensor of a shape expands to that of a matrix."""
    sizes = zip(shape[::-1], target[::-1])
    return len(target) == 2 and len(shape) <= 2 and all(same(m, 1) or same(m, n) for m, n in sizes)


def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * (batch1 @ batch2), item by item of a batch.

    Parameters
    ----------
    input : broadcasts to (batch, m, n).
    batch1 : (batch, m, k)
    batch2 : (batch, k, n)
    beta, alpha : numbers. With beta 0 the values of `input` do not count, nan included.

    Raises
    ------
    ShapeError, DTypeError : see `bmm`; or `input` does not broadcast to (batch, m, n).
    """
    return _add("baddbmm", input, bmm(batch1, batch2), beta, alpha)


def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * the sum of the products of a batch, added one after the other.

    Parameters
    ----------
    input : broadcasts to (m, n).
    batch1 : (batch, m, k)
    batch2 : (batch, k, n)
    beta, alpha : numbers. With beta 0 the values of `input` do not count, nan included.

    Raises
    ------
    ShapeError, DTypeError : see `bmm`; or `input` does not broadcast to (m, n).

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.addbmm(tw.ones(1, 1), tw.ones(3, 1, 2), tw.ones(3, 2, 1))
    tensor([[7.]])
    """
    summed = sum_(bmm(batch1, batch2), dim=(0,), keepdim=False)
    if summed.dtype != batch1.dtype:  # sums of integers are int64
        summed = to(summed, dtype=batch1.dtype, x_dtype=summed.dtype)
    return _add("addbmm", input, summed, beta, alpha)


def addmv(input: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * (mat @ vec).

    Parameters
    ----------
    input : broadcasts to (m,).
    mat : (m, k)
    vec : (k,)
    beta, alpha : numbers. With beta 0 the values of `input` do not count, nan included.

    Raises
    ------
    ShapeError, DTypeError : see `mv`; or `input` does not broadcast to (m,).
    """
    return _add("addmv", input, mv(mat, vec), beta, alpha)


def addr(input: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * outer(vec1, vec2).

    Parameters
    ----------
    input : broadcasts to (m, n).
    vec1 : (m,)
    vec2 : (n,)
    beta, alpha : numbers. With beta 0 the values of `input` do not count, nan included.

    Raises
    ------
    ShapeError : `vec1` or `vec2` is not 1-D, or `input` does not broadcast to (m, n).
    """
    shape = (*vec1.shape, *vec2.shape)
    if beta == alpha == 1 and input.dtype == vec1.dtype == vec2.dtype and input.dtype.kind == "f":
        if vec1.ndim == vec2.ndim == 1 and _expands(input.shape, shape):  # the same bits, without the product in memory
            return addcmul(input, reshape(vec1, (shape[0], 1)), vec2)
    return _add("addr", input, outer(vec1, vec2), beta, alpha)


__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm"]
