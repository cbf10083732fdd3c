"""Transforms of functions with the signatures of `torch.func`: derivatives that are functions again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from common.autograd.backward import stand_ins, without_history
from common.core.errors import ArgumentError, GradientError
from common.core.int_arguments import callable_argument, integer, shown
from common.core.spec import numel
from common.core.tree import flatten, unflatten
from common.ops.create.creation import eye
from common.ops.math.arithmetic import zeros_like
from common.ops.shape.cat import stack
from common.ops.shape.view import reshape
from common.tensor.base import TensorBase
from common.tensor.create import lift
from common.transforms.grad import Linearised, grad, positions, require_tensors, value_and_grad, vjp
from common.transforms.vmap import chunk_vmap, vmap

Function = Callable[..., Any]


def grad_and_value(func: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that returns ``(gradient, value)``: `value_and_grad` in PyTorch's order.

    Parameters
    ----------
    func, argnums, has_aux : see `grad`.
    """
    both = value_and_grad(callable_argument(func, "grad_and_value", "func"), argnums, has_aux)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return call


def jvp(
    func: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False, has_aux: bool = False
) -> Any:
    """Results of a function at `primals`, and its derivative along `tangents`.

    Parameters
    ----------
    func : of tensors; returns tensors in any structure, or ``(outputs, aux)`` with `has_aux`.
    primals, tangents : tuples of tensors of equal shapes, in equal structures.
    strict : refuse results that do not depend on the primals, instead of giving zeros.
    has_aux : the function returns a pair, whose second part is handed through.

    Returns
    -------
    outputs, tangents, aux : the last only with `has_aux`.

    Raises
    ------
    ArgumentError : they are no tuples, or differ in structure or shapes; or the function returns no tensor.
    GradientError : with `strict`, a result does not depend on the primals.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.func.jvp(lambda x: x * x, (tw.tensor([3.0]),), (tw.tensor([1.0]),))
    (tensor([9.]), tensor([6.]))
    """
    require_tangents(primals, tangents)
    pair = Linearised(func, primals, has_aux, _JVP, writable=True)
    require_tensors(_JVP, pair.flat, pair.outputs)
    if strict and any(getattr(x, "edge", None) is None for x in pair.flat):
        raise GradientError(f"{_JVP}: a result of f does not depend on the primals (strict=True)")

    product = _push(pair, tangents)
    return (pair.result, product, pair.aux) if has_aux else (pair.result, product)


_JVP = "jvp(f, primals, tangents)"


def require_tangents(primals: Any, tangents: Any) -> None:
    """Refuse what `jvp` cannot take for tensors and their tangents.

    Raises
    ------
    ArgumentError : they are no tuples of tensors, or differ in structure or shapes.
    """
    if not isinstance(primals, tuple):
        raise ArgumentError(f"{_JVP}: Expected primals to be a tuple, got {type(primals).__name__}")
    (moving, structure), (given, other) = flatten(primals), flatten(tangents)
    if structure != other:
        raise ArgumentError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got {shown(primals)} and {shown(tangents)}"
        )
    if not moving:
        raise ArgumentError(f"{_JVP}: Expected primals to contain at least one Tensor")
    moving, given = [lift(x) for x in moving], [lift(x) for x in given]
    for x in (*moving, *given):
        if not isinstance(x, TensorBase):
            raise ArgumentError(f"{_JVP}: Expected primals and tangents to only contain Tensors, got {shown(x)}")
    shapes = [[tuple(x.shape) for x in part] for part in (moving, given)]
    if shapes[0] != shapes[1]:
        raise ArgumentError(
            f"{_JVP}: Expected primals and tangents to have the same structure and shapes, got {shapes[0]} and "
            f"{shapes[1]}"
        )


def _push(pair: Linearised, tangents: tuple[Any, ...]) -> Any:
    """The Jacobian times tangents: the pullback is linear in its cotangent, so its own pullback does it."""
    leaves, structure = flatten(pair.result)
    zeros = [zeros_like(x.detach()) for x in leaves]
    floating = [i for i, x in enumerate(leaves) if x.dtype.kind == "f"]  # others do not move

    def placed(parts: Sequence[Any]) -> Any:
        moved = dict(zip(floating, parts, strict=True))
        return unflatten(structure, [moved.get(i, zero) for i, zero in enumerate(zeros)])

    def pull(cotangents: Any) -> Any:
        return pair.pull(placed(cotangents), retain=True)

    if floating:
        again = Linearised(pull, ([zeros[i] for i in floating],), False)
        product = placed(again.pull(tangents, retain=True)[0])
        for leaf in again.inner:
            stand_ins.add(leaf)
    else:
        product = unflatten(structure, zeros)
    if not any(isinstance(x, TensorBase) and x.requires_grad for x in flatten((pair.result, tangents))[0]):
        found, structure = flatten(product)
        product = unflatten(structure, [without_history(x) for x in found])  # nothing outside is being differentiated
    return product


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """Results of a function at `primals`, and the function that applies its Jacobian there to tangents.

    Parameters
    ----------
    func : of tensors; returns tensors in any structure.
    primals : tensors, in any structure.

    Returns
    -------
    outputs : what the function returned.
    jvp_fn : takes tangents, one argument per primal, in its structure; can be called again. The function does not run
        again.

    Raises
    ------
    ArgumentError : the function returns no tensor; or, by `jvp_fn`, tangents differ from the primals in structure,
        shapes or dtypes.

    Examples
    --------
    >>> import dynamic as tw
    >>> y, push = tw.func.linearize(lambda x: x * x, tw.tensor([1.0, 2.0]))
    >>> push(tw.tensor([1.0, 10.0]))
    tensor([ 2., 40.])
    """
    pair = Linearised(func, primals, False, writable=True)
    require_tensors("linearize(f, *primals)", pair.flat, pair.outputs)

    def jvp_fn(*tangents: Any) -> Any:
        _require_like(pair, tangents)
        return _push(pair, tangents)

    return pair.result, jvp_fn


def _require_like(pair: Linearised, tangents: tuple[Any, ...]) -> None:
    """Refuse tangents that are not like the primals of `linearize`."""
    given, structure = flatten(tangents)
    if structure != pair.structure:
        raise ArgumentError(
            "linearize: Expected the tangents to have the same argspec as the primals: as many arguments, in their "
            f"structure. Got {shown(tangents)}"
        )
    for position, (tangent, primal) in enumerate(zip(given, pair.inner, strict=True)):
        x = lift(tangent)
        if not isinstance(x, TensorBase):
            raise ArgumentError(f"linearize: tangent {position} must be Tensor, not {type(x).__name__} ({shown(x)})")
        for what, got, wanted in (("shape", tuple(x.shape), tuple(primal.shape)), ("dtype", x.dtype, primal.dtype)):
            if got != wanted:
                raise ArgumentError(
                    f"linearize: tangent {position} in flattened pytree doesn't match the {what} of its primal: got "
                    f"{got}, expected {wanted}"
                )


def jacrev(
    func: Function, argnums: int | Sequence[int] = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> Function:
    """A function that returns the Jacobian: the function runs once, and its pullback once for all rows.

    Parameters
    ----------
    func : of tensors; returns tensors in any structure, or ``(outputs, aux)`` with `has_aux`.
    argnums : which argument to differentiate with respect to, or several.
    has_aux : return ``(jacobian, aux)``.
    chunk_size : how many rows to compute at once; all by default. With 1 the pullback may do what `vmap` refuses.

    Returns
    -------
    callable : of the same arguments. Per result, and per leaf of the argument, (*result.shape, *leaf.shape).

    Raises
    ------
    ArgumentError : `chunk_size` is less than 1.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.func.jacrev(lambda x: x * x)(tw.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and integer(chunk_size, "jacrev", "chunk_size") <= 0:
        raise ArgumentError(f"jacrev: `chunk_size` should be greater than 0. (got {shown(chunk_size)})")
    return _jacobian(callable_argument(func, "jacrev", "func"), argnums, has_aux, chunk_size, writable=False)


def _jacobian(
    func: Function, argnums: int | Sequence[int], has_aux: bool, chunk_size: int | None, writable: bool
) -> Function:
    """`jacrev`, and `jacfwd`, whose function may write to its arguments."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        single = isinstance(argnums, int)
        chosen = positions(argnums, len(args))

        def inner(*xs: Any) -> Any:
            full = list(args)
            for i, x in zip(chosen, xs, strict=True):
                full[i] = x
            return func(*full, **kwargs)

        pair = Linearised(inner, tuple(args[i] for i in chosen), has_aux, writable=writable)
        require_tensors("vjp(f, *primals)", pair.flat, pair.outputs)
        leaves, structure = flatten(pair.result)
        parts = []

        def pull(cotangents: Any) -> Any:
            return pair.pull(cotangents, retain=True)

        for position in range(len(leaves)):
            rows = _rows(pull, leaves, structure, position, chunk_size)
            parts.append(rows[0] if single else rows)
        jacobian = unflatten(structure, parts)
        return (jacobian, pair.aux) if has_aux else jacobian

    return call


def _rows(pull: Function, leaves: Sequence[Any], structure: Any, position: int, chunk_size: int | None) -> Any:
    """The Jacobian of one result: what the pullback gives for cotangents that are 1 at one of its elements, batched."""
    zeros = [zeros_like(x.detach()) for x in leaves]
    here = leaves[position]
    count = numel(here.shape)

    def row(cotangent: Any) -> Any:
        return pull(unflatten(structure, [*zeros[:position], cotangent, *zeros[position + 1 :]]))

    basis = reshape(lift(eye(count, dtype=here.dtype)), (count, *here.shape))
    if chunk_size == 1 and int(count):  # no batch, so its rules do not apply
        rows = [flatten(row(basis[i])) for i in range(int(count))]
        found, shape = [stack(parts) for parts in zip(*(flat for flat, _ in rows), strict=True)], rows[0][1]
    else:
        found, shape = flatten(vmap(row, randomness="same", chunk_size=chunk_size)(basis))
    return unflatten(shape, [reshape(x, (*here.shape, *x.shape[1:])) for x in found])


def jacfwd(
    func: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """A function that returns the Jacobian, by the same way as `jacrev`: `func` may write to its arguments here.

    Parameters
    ----------
    func, argnums, has_aux : see `jacrev`.
    randomness : how PyTorch's columns draw; here the function runs once, so that all rows see the same numbers.
    """
    return _jacobian(callable_argument(func, "jacfwd", "func"), argnums, has_aux, None, writable=True)


def hessian(func: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that returns all second derivatives of a scalar function.

    Parameters
    ----------
    func, argnums : see `jacrev`.
    """
    return jacrev(jacrev(func, argnums), argnums)


__all__ = [
    "chunk_vmap", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap",
]  # fmt: skip
