"""Derivatives of functions as a whole, with the signatures of PyTorch's `autograd.functional`.

All are made of `autograd.grad`, so they work on recorded tensors and in traces, and can be differentiated with
`create_graph`. Rows of a Jacobian are computed one by one, or with `vectorize` at once. Second derivatives are
symmetric, so products with a Hessian from either side are one computation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.autograd import backward as autograd
from common.autograd.backward import view_of, without_history
from common.core import mode
from common.core.errors import ArgumentError, GradientError
from common.core.size_tuples import Size
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
        xs, ys, pack, pack_out = _run(func, inputs, create_graph, "vjp", strict)
        products = _gradients(ys, xs, _cotangents(ys, v, "vjp"), create_graph, _RESULT if strict else "")
        _require_recorded(products, _DERIVATIVE if strict and create_graph else "")
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
        xs, ys, _, pack_out = _run(func, inputs, create_graph, "jvp", strict)
        dummies = [zeros_like(y.detach()).requires_grad_() for y in ys]
        pulled = _gradients(ys, xs, dummies, True, _RESULT if strict else "")
        products = _gradients(pulled, dummies, _cotangents(xs, v, "jvp"), create_graph)
        _require_recorded(products, _DERIVATIVE if strict and create_graph else "")
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

    Raises
    ------
    GradientError : `strict`, as in `vjp`, or with `vectorize`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.autograd.functional.jacobian(lambda x: x * x, tw.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strict and vectorize:
        raise GradientError(
            "strict=True and vectorize=True are not supported together: pass strict=False or vectorize=False"
        )
    with mode.enable_grad():
        xs, ys, pack, pack_out = _run(func, inputs, create_graph, "jacobian", strict)
        if vectorize:
            return pack_out([pack(_rows_at_once(y, xs, create_graph)) for y in ys])
        told = [f"Output {i} {_INDEPENDENT}" if strict else "" for i in range(len(ys))]
        return pack_out([pack(_rows(y, xs, create_graph, each)) for y, each in zip(ys, told, strict=True)])


def _rows(y: Any, xs: Sequence[Any], create_graph: bool, independent: str = "") -> list[Any]:
    """Derivatives of one result, row by row."""
    flat = reshape(y, -1)
    rows = [_gradients([flat[i]], xs, [None], create_graph, independent) for i in range(numel(y.shape))]
    for row in rows:
        _require_recorded(row, _DERIVATIVE if independent and create_graph else "")
    if not rows:
        return [zeros_like(reshape(x, (1, *x.shape)).detach())[:0].reshape(*y.shape, *x.shape) for x in xs]
    return [reshape(stack([row[i] for row in rows]), (*y.shape, *x.shape)) for i, x in enumerate(xs)]


def _rows_at_once(y: Any, xs: Sequence[Any], create_graph: bool) -> list[Any]:
    """Derivatives of one result, as one batch."""
    count = numel(y.shape)
    if not isinstance(count, Dim) and count == 0:
        return _rows(y, xs, create_graph)
    basis = reshape(lift(eye(count, dtype=y.dtype)), (count, *y.shape))
    found = vmap(lambda row: tuple(_gradients([y], xs, [row], create_graph)))(basis)
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
    _require_tensors(inputs, "inputs given to hessian")

    def gradient(*xs: Any) -> Any:
        returned = func(*xs)
        _require_tensors(returned, "outputs of the user-provided function given to hessian")
        y = _scalar(returned, "hessian")
        if strict:
            _require_recorded([y], _OUTPUT)
        found = _gradients([y], xs, [None], True, _GRADIENT if strict else "")
        _require_recorded(found, _GRADIENT if strict else "")
        return tuple(found)

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
    return _vector_hessian("vhp", func, inputs, v, create_graph, strict)


def _vector_hessian(name: str, func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool) -> Any:
    with mode.enable_grad():
        xs, ys, pack, pack_out = _run(func, inputs, create_graph, name, strict)
        y = _scalar(ys[0] if len(ys) == 1 else tuple(ys), name)
        first = _gradients([y], xs, [None], True, _RESULT if strict else "")
        _require_recorded(first, _GRADIENT if strict else "")
        products = _gradients(first, xs, _cotangents(xs, v, name), create_graph, _DERIVATIVE if strict else "")
    return pack_out(_results(ys, create_graph)), pack(products)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The result of a scalar function, and the product of its Hessian with a vector; the same as `vhp`.

    Parameters
    ----------
    func, inputs, v, create_graph, strict : see `vhp`.
    """
    return _vector_hessian("hvp", func, inputs, v, create_graph, strict)


# What `strict` refuses, with the number of a result or of an input.
_ZEROS = "strict=False gives zeros"
_OUTPUT = (
    "Output {} of the user-provided function does not require gradients: it is not computed from the inputs by "
    f"differentiable ops; {_ZEROS}"
)
_INDEPENDENT = "of the user-provided function is independent of input {}; " + _ZEROS
_RESULT, _DERIVATIVE = f"The output {_INDEPENDENT}", f"The jacobian {_INDEPENDENT}"
_GRADIENT = "The jacobian of the user-provided function with respect to input {} is independent of it; " + _ZEROS


def _run(
    func: Function, inputs: Any, create_graph: bool, name: str, strict: bool
) -> tuple[list[Any], list[Any], Any, Any]:
    """Inputs and results as lists, and what gives lists the structure of each."""
    single = not isinstance(inputs, (tuple, list))
    _require_tensors(inputs, f"inputs given to {name}")
    given = [lift(x) for x in ([inputs] if single else inputs)]
    xs = [view_of(x) if create_graph and x.requires_grad else without_history(x).requires_grad_() for x in given]
    returned = func(*xs)
    _require_tensors(returned, f"outputs of the user-provided function given to {name}")
    several = isinstance(returned, (tuple, list))
    ys = list(returned) if several else [returned]
    if strict:
        _require_recorded(ys, _OUTPUT)
    return xs, ys, (lambda z: z[0]) if single else tuple, tuple if several else (lambda z: z[0])


def _require_tensors(given: Any, what: str) -> None:
    """Refuse what is neither a tensor nor a tuple of them; numbers and arrays stand for tensors."""
    several = isinstance(given, (tuple, list))
    for i, x in enumerate(given if several else [given]):
        if not isinstance(lift(x), TensorBase):
            place = f"the value at index {i} has" if several else "they have"
            raise ArgumentError(
                f"The {what} must be either a Tensor or a tuple of Tensors, but {place} type {type(x).__name__}"
            )


def _require_recorded(xs: Sequence[Any], refusal: str) -> None:
    """Refuse tensors without history, if there is a refusal."""
    for i, x in enumerate(xs):
        if refusal and not x.requires_grad:
            raise GradientError(refusal.format(i))


def _gradients(
    ys: Sequence[Any], xs: Sequence[Any], cotangents: Any, create_graph: bool, independent: str = ""
) -> list[Any]:
    """Gradients; of inputs on which no result depends they are zeros, or `independent` is the refusal."""
    used = [(y, c) for y, c in zip(ys, cotangents, strict=True) if isinstance(y, TensorBase) and y.requires_grad]
    found: Sequence[Any] = [None] * len(xs)
    if used:
        found = autograd.grad([y for y, _ in used], xs, [c for _, c in used], retain_graph=True,
                              create_graph=create_graph, allow_unused=True)  # fmt: skip
    for i, g in enumerate(found):
        if independent and g is None:
            raise GradientError(independent.format(i))
    return [zeros_like(x.detach()) if g is None else g for x, g in zip(xs, found)]


def _cotangents(like: Sequence[Any], v: Any, name: str) -> list[Any]:
    if v is None:
        if len(like) != 1 or numel(like[0].shape) != 1:
            whose = "user-provided function returns" if name == "vjp" else "input to the user-provided function is"
            raise GradientError(f"The vector v can only be None if the {whose} a single Tensor with a single element")
        return [ones_like(like[0].detach())]
    given = [lift(x) for x in (v if isinstance(v, (tuple, list)) else (v,))]
    for i, x in enumerate(v if isinstance(v, (tuple, list)) else (v,)):
        if not isinstance(x, (TensorBase, np.ndarray)):
            raise ArgumentError(
                f"The v given to {name} must be either a Tensor or a tuple of Tensors but the value at index {i} has "
                f"type {type(x).__name__}"
            )
    if len(given) != len(like):
        expected = "a single Tensor" if len(like) == 1 else f"{len(like)} Tensors"
        raise GradientError(f"The given v should contain {expected}. It has {len(given)}; it belongs to {name}")
    for i, (one, x) in enumerate(zip(given, like, strict=True)):
        if tuple(one.shape) != tuple(x.shape):
            raise GradientError(
                f"v has invalid size: should be {Size(x.shape)} but got {Size(one.shape)} at index {i} (in {name})"
            )
    return given


def _scalar(y: Any, name: str) -> Any:
    y = y[0] if isinstance(y, (tuple, list)) and len(y) == 1 else y
    if not isinstance(y, TensorBase):
        raise GradientError(f"The function given to {name} should return a single Tensor")
    if numel(y.shape) != 1:
        raise GradientError(
            f"The Tensor returned by the function given to {name} should contain a single element, not {numel(y.shape)}"
        )
    return reshape(y, ())


def _results(ys: Sequence[Any], create_graph: bool) -> list[Any]:
    return list(ys) if create_graph else [without_history(y) for y in ys]


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
