"""Transforms of functions with the signatures of `torch.func`: derivatives that are functions again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from common.autograd.transforms import grad, value_and_grad, vjp
from common.create import lift
from common.errors import ArgumentError, ShapeError
from common.ops.arithmetic import zeros_like
from common.ops.create import eye
from common.ops.pad import stack
from common.ops.view import reshape
from common.spec import numel
from common.tensor import TensorBase
from common.tree import flatten, unflatten

Function = Callable[..., Any]


def grad_and_value(func: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that returns ``(gradient, value)``: `value_and_grad` in PyTorch's order.

    Parameters
    ----------
    func, argnums, has_aux : see `grad`.
    """
    both = value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return call


def jvp(func: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """Results of a function at `primals`, and its derivative along `tangents`.

    Parameters
    ----------
    func : of tensors; returns a tensor or a tuple of them.
    primals, tangents : tuples of tensors of equal shapes.

    Raises
    ------
    ArgumentError : they are no tuples.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.func.jvp(lambda x: x * x, (tw.tensor([3.0]),), (tw.tensor([1.0]),))
    (tensor([9.]), tensor([6.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise ArgumentError("jvp(f, primals, tangents): expected primals and tangents to be tuples")
    y, pull = vjp(func, *primals)
    leaves, structure = flatten(y)
    # the pullback is linear in its cotangent: its own pullback applies the Jacobian itself
    _, push = vjp(pull, unflatten(structure, [zeros_like(x.detach()) for x in leaves]))
    product = push(tangents)[0]
    if not any(isinstance(x, TensorBase) and x.requires_grad for x in flatten((y, tangents))[0]):
        found, structure = flatten(product)
        product = unflatten(structure, [x.detach() for x in found])  # nothing outside is being differentiated
    return y, product


def jacrev(func: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that returns the Jacobian, computed row by row.

    Parameters
    ----------
    func : of tensors; returns a tensor or a tuple of them.
    argnums : which argument to differentiate with respect to, or several.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.func.jacrev(lambda x: x * x)(tw.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def call(*args: Any) -> Any:
        single = isinstance(argnums, int)
        chosen = [argnums] if isinstance(argnums, int) else list(argnums)
        if not all(-len(args) <= i < len(args) for i in chosen):
            raise ArgumentError(f"argnums {argnums} does not name one of the {len(args)} positional arguments")

        def inner(*xs: Any) -> Any:
            full = list(args)
            for i, x in zip(chosen, xs, strict=True):
                full[i] = x
            return func(*full)

        y, pull = vjp(inner, *(args[i] for i in chosen))
        leaves, structure = flatten(y)
        parts = []
        for position, leaf in enumerate(leaves):
            rows = [pull(unflatten(structure, basis)) for basis in _basis(leaves, position)]
            parts.append(_stacked(rows, leaf.shape)[0] if single else _stacked(rows, leaf.shape))
        return unflatten(structure, parts)

    return call


def _basis(leaves: Sequence[Any], position: int) -> Iterator[list[Any]]:
    """Cotangents that are 1 at one element of one result, for each of its elements."""
    zeros = [zeros_like(x.detach()) for x in leaves]
    here = leaves[position]
    ones = lift(eye(numel(here.shape), dtype=here.dtype))
    for i in range(numel(here.shape)):
        yield [*zeros[:position], reshape(ones[i], here.shape), *zeros[position + 1 :]]


def _stacked(rows: Sequence[Any], shape: tuple[Any, ...]) -> Any:
    """Rows of equal structure, leaf by leaf stacked to `shape` and their own shapes."""
    flat = [flatten(row) for row in rows]
    if not flat:
        raise ShapeError("jacrev(): the result has no elements")
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    return unflatten(flat[0][1], [reshape(stack(column), (*shape, *column[0].shape)) for column in columns])


def jacfwd(func: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that returns the Jacobian; the same as `jacrev`, since this engine has no forward mode of its own.

    Parameters
    ----------
    func, argnums : see `jacrev`.
    """
    return jacrev(func, argnums)


def hessian(func: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that returns all second derivatives of a scalar function.

    Parameters
    ----------
    func, argnums : see `jacrev`.
    """
    return jacrev(jacrev(func, argnums), argnums)


__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp"]
