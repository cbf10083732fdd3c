"""Derivatives of functions as a whole, with the signatures of PyTorch's `autograd.functional`.

All are made of `autograd.grad`, so they work on recorded tensors and in traces, and can be differentiated with
`create_graph`. Rows of a Jacobian are computed one by one, or with `vectorize` at once. Second derivatives are
symmetric, so products with a Hessian from either side are one computation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from common.autograd import backward as autograd
from common.autograd.backward import view_of, without_history
from common.core import mode
from common.core.errors import ArgumentError, GradientError
from common.core.sizes import Dim
from common.core.spec import numel
from common.ops.create.creation import eye
from common.ops.math.arithmetic import ones_like, zeros_like
from common.ops.shape.cat import stack
from common.ops.shape.view import reshape
from common.tensor.base import TensorBase
from common.tensor.create import lift
from common.transforms.vmap import vmap

Function = Callable[..., Any]


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Results of a function, and the product of a cotangent with its Jacobian.

    Parameters
    ----------
    func : of tensors; returns a tensor or a tuple of them.
    inputs : a tensor or a tuple of them.
    v : of the structure of the results; may be left out for one result of one element.
    create_graph : record the computation, so that it can be differentiated.
    strict : refuse results that do not depend on an input, instead of giving zeros.

    Returns
    -------
    outputs, vjp : of the structures of the results and of the inputs.

    Raises
    ------
    GradientError : `strict`, or `v` is missing.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.autograd.functional.vjp(lambda x: x * x, tw.tensor([1.0, 2.0]), tw.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with mode.enable_grad():
        xs, ys, pack, pack_out = _run(func, inputs, create_graph, "vjp")
        products = _gradients(ys, xs, _cotangents(ys, v, "vjp"), create_graph, strict)
    return pack_out(_results(ys, create_graph)), pack(products)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Results of a function, and the product of its Jacobian with a tangent.

    Parameters
    ----------
    func, inputs, create_graph, strict : see `vjp`.
    v : of the structure of the inputs; may be left out for one input of one element.

    Returns
    -------
    outputs, jvp : of the structure of the results.

    Notes
    -----
    The product is the derivative of ``vjp`` with respect to its cotangent, on which it depends linearly.
    """
    with mode.enable_grad():
        xs, ys, _, pack_out = _run(func, inputs, create_graph, "jvp")
        dummies = [zeros_like(y.detach()).requires_grad_() for y in ys]
        pulled = _gradients(ys, xs, dummies, True, strict)
        products = _gradients(pulled, dummies, _cotangents(xs, v, "jvp"), create_graph, strict=False)
    return pack_out(_results(ys, create_graph)), pack_out(products)


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """All derivatives of all results with respect to all inputs.

    Parameters
    ----------
    func, inputs, create_graph, strict : see `vjp`.
    vectorize : compute all rows at once, as `vmap` does, instead of one after the other.
    strategy : how PyTorch goes about it; "reverse-mode" and "forward-mode" have the same result here.

    Returns
    -------
    tensor : of shape ``(*result.shape, *input.shape)``; a tuple over inputs if `inputs` is one, in a tuple over results
        if the function returns one.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.autograd.functional.jacobian(lambda x: x * x, tw.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    with mode.enable_grad():
        xs, ys, pack, pack_out = _run(func, inputs, create_graph, "jacobian")
        rows = _rows_at_once if vectorize else _rows
        return pack_out([pack(rows(y, xs, create_graph, strict)) for y in ys])


def _rows(y: Any, xs: Sequence[Any], create_graph: bool, strict: bool) -> list[Any]:
    """Derivatives of one result, row by row."""
    flat = reshape(y, -1)
    rows = [_gradients([flat[i]], xs, [None], create_graph, strict) for i in range(numel(y.shape))]
    if not rows:
        return [zeros_like(reshape(x, (1, *x.shape)).detach())[:0].reshape(*y.shape, *x.shape) for x in xs]
    return [reshape(stack([row[i] for row in rows]), (*y.shape, *x.shape)) for i, x in enumerate(xs)]


def _rows_at_once(y: Any, xs: Sequence[Any], create_graph: bool, strict: bool) -> list[Any]:
    """Derivatives of one result, as one batch."""
    count = numel(y.shape)
    if not isinstance(count, Dim) and count == 0:
        return _rows(y, xs, create_graph, strict)
    basis = reshape(lift(eye(count, dtype=y.dtype)), (count, *y.shape))
    found = vmap(lambda row: tuple(_gradients([y], xs, [row], create_graph, strict)))(basis)
    return [reshape(g, (*y.shape, *x.shape)) for g, x in zip(found, xs, strict=True)]


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """All second derivatives of a function of one scalar result.

    Parameters
    ----------
    func, inputs, create_graph, strict : see `vjp`.
    vectorize : see `jacobian`.
    outer_jacobian_strategy : see `strategy` there.

    Returns
    -------
    tensor : of shape ``(*input.shape, *input.shape)``; for a tuple of inputs a tuple of tuples.

    Raises
    ------
    GradientError : the result is not a scalar.
    """
    single = isinstance(inputs, TensorBase)

    def gradient(*xs: Any) -> Any:
        y = _scalar(func(*xs), "hessian")
        return tuple(_gradients([y], xs, [None], True, strict))

    rows = jacobian(gradient, inputs, create_graph, strict, vectorize)
    return rows[0] if single else rows


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The result of a scalar function, and the product of a vector with its Hessian.

    Parameters
    ----------
    func, inputs, create_graph, strict : see `vjp`.
    v : of the structure of the inputs.

    Returns
    -------
    output, vhp : the latter of the structure of the inputs.
    """
    with mode.enable_grad():
        xs, ys, pack, pack_out = _run(func, inputs, create_graph, "vhp")
        y = _scalar(ys[0] if len(ys) == 1 else tuple(ys), "vhp")
        first = _gradients([y], xs, [None], True, strict)
        products = _gradients(first, xs, _cotangents(xs, v, "vhp"), create_graph, strict)
    return pack_out(_results(ys, create_graph)), pack(products)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The result of a scalar function, and the product of its Hessian with a vector; the same as `vhp`.

    Parameters
    ----------
    func, inputs, v, create_graph, strict : see `vhp`.
    """
    return vhp(func, inputs, v, create_graph, strict)


def _run(func: Function, inputs: Any, create_graph: bool, name: str) -> tuple[list[Any], list[Any], Any, Any]:
    """Inputs and results as lists, and what gives lists the structure of each."""
    single = not isinstance(inputs, (tuple, list))
    given = [lift(x) for x in ([inputs] if single else inputs)]
    for position, x in enumerate(given):
        if not isinstance(x, TensorBase):
            raise ArgumentError(
                f"{name}: the inputs given to the function must be either a Tensor or a tuple of Tensors but the value "
                f"at index {position} has type {type(x).__name__}"
            )
    xs = [view_of(x) if create_graph and x.requires_grad else without_history(x).requires_grad_() for x in given]
    returned = func(*xs)
    several = isinstance(returned, (tuple, list))
    ys = list(returned) if several else [returned]
    if not all(isinstance(y, TensorBase) for y in ys):
        raise ArgumentError(f"{name}: the function must return a Tensor or a tuple of Tensors")
    return xs, ys, (lambda z: z[0]) if single else tuple, tuple if several else (lambda z: z[0])


def _gradients(ys: Sequence[Any], xs: Sequence[Any], cotangents: Any, create_graph: bool, strict: bool) -> list[Any]:
    used = [(y, c) for y, c in zip(ys, cotangents, strict=True) if isinstance(y, TensorBase) and y.requires_grad]
    found: Sequence[Any] = [None] * len(xs)
    if used:
        found = autograd.grad([y for y, _ in used], xs, [c for _, c in used], retain_graph=True,
                              create_graph=create_graph, allow_unused=True)  # fmt: skip
    missing = [i for i, g in enumerate(found) if g is None]
    if strict and missing:
        raise GradientError(f"a result of the user-provided function is independent of input {missing[0]}")
    return [zeros_like(x.detach()) if g is None else g for x, g in zip(xs, found)]


def _cotangents(like: Sequence[Any], v: Any, name: str) -> list[Any]:
    if v is None:
        if len(like) != 1 or numel(like[0].shape) != 1:
            raise GradientError(f"{name}: the vector v can only be None if it stands for one tensor of one element")
        return [ones_like(like[0].detach())]
    given = [lift(x) for x in (v if isinstance(v, (tuple, list)) else (v,))]
    if len(given) != len(like) or any(tuple(a.shape) != tuple(b.shape) for a, b in zip(given, like)):
        raise GradientError(
            f"{name}: v has tensors of shapes {[tuple(x.shape) for x in given]}, expected "
            f"{[tuple(x.shape) for x in like]}"
        )
    return given


def _scalar(y: Any, name: str) -> Any:
    y = y[0] if isinstance(y, (tuple, list)) and len(y) == 1 else y
    if not isinstance(y, TensorBase) or numel(y.shape) != 1:
        raise GradientError(f"{name}: the function must return a single Tensor with a single element")
    return reshape(y, ())


def _results(ys: Sequence[Any], create_graph: bool) -> list[Any]:
    return list(ys) if create_graph else [without_history(y) for y in ys]


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
