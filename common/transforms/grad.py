"""Functional transforms: `grad`, `value_and_grad` and `vjp`, with the conventions of torch.func and JAX.

A transform runs the function once on fresh leaves and differentiates what was recorded. Transforms nest, and work
inside traced functions: there the leaves are tracers and the backward pass is recorded like everything else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.autograd.backward import cotangent_like, differentiate, relay, stand_ins, view_of, without_history
from common.autograd.backward_pass import collect
from common.autograd.view_histories import WrittenInside
from common.core import mode
from common.core.errors import ArgumentError, DTypeError, GradientError
from common.core.int_arguments import callable_argument, shown
from common.core.tree import flatten, unflatten
from common.tensor.base import NUMBERS, TensorBase
from common.tensor.create import lift
from common.tensor.node import next_number

Function = Callable[..., Any]


def grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of a scalar function.

    Parameters
    ----------
    function : returns a scalar, or ``(scalar, aux)`` with `has_aux`.
    argnums : which positional argument to differentiate, or several; arguments may be nested tuples, lists, dicts.
    has_aux : return ``(gradient, aux)``.

    Returns
    -------
    callable : same arguments; the gradient has the structure of the argument, or is a tuple of such.

    Raises
    ------
    GradientError : the function returned something that is not a scalar tensor.
    DTypeError : a differentiated argument is not floating point.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.grad(lambda x: (x * x).sum())(tw.tensor([1.0, 3.0]))
    tensor([2., 6.])
    """
    both = value_and_grad(callable_argument(function, "grad", "function"), argnums, has_aux)

    @functools.wraps(function)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, g = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return gradient


def value_and_grad(function: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """A function that returns ``(value, gradient)`` of a scalar function; with `has_aux`, ``((value, aux), gradient)``.

    Parameters
    ----------
    function, argnums, has_aux : see `grad`.

    Raises
    ------
    GradientError, DTypeError : see `grad`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.value_and_grad(lambda x: (x * x).sum())(tw.tensor([1.0, 3.0]))
    (tensor(10.), tensor([2., 6.]))
    """

    @functools.wraps(callable_argument(function, "value_and_grad", "function"))
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        replaced = positions(argnums, len(args))
        chosen = tuple(args[i] for i in replaced)

        def inner(*primals: Any) -> Any:
            full = list(args)
            for i, x in zip(replaced, primals, strict=True):
                full[i] = x
            return function(*full, **kwargs)

        pair = Linearised(inner, chosen, has_aux, "grad_and_value(f)(*args)")
        value = _scalar(pair.outputs)
        gradient = pair.pull(cotangent_like(value), retain=False)
        result = (pair.result, pair.aux) if has_aux else pair.result
        return result, (gradient[0] if isinstance(argnums, int) else gradient)

    return value_and_gradient


def vjp(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The outputs of a function and its pullback.

    Parameters
    ----------
    function : of `primals`; returns tensors in any structure, or ``(outputs, aux)`` with `has_aux`.
    primals : differentiated arguments, in any structure.
    has_aux : the function returns a pair, whose second part is handed through.

    Returns
    -------
    outputs : what the function returned.
    pullback : takes cotangents in the structure of the outputs; returns a tuple with a cotangent per primal. It can
        be called again.
    aux : only with `has_aux`.

    Raises
    ------
    DTypeError : a primal is not floating point.

    Examples
    --------
    >>> import dynamic as tw
    >>> y, pullback = tw.vjp(lambda a, b: a * b, tw.tensor([2.0]), tw.tensor([5.0]))
    >>> pullback(tw.tensor([1.0]))
    (tensor([5.]), tensor([2.]))
    """
    pair = Linearised(function, primals, has_aux)
    require_tensors("vjp(f, *primals)", pair.flat, pair.outputs)

    def pullback(cotangents: Any) -> Any:
        return pair.pull(cotangents, retain=True)

    return (pair.result, pullback, pair.aux) if has_aux else (pair.result, pullback)


def positions(argnums: Any, count: int) -> list[int]:
    """The positional arguments that are meant, of `count`.

    Raises
    ------
    ArgumentError : `argnums` is neither a number nor several; it is empty, names an argument twice, or one that is not
        there.
    """
    if isinstance(argnums, int):
        chosen = (argnums,)
    elif isinstance(argnums, (tuple, list)):
        chosen = tuple(argnums)
    else:
        raise ArgumentError(f"argnums must be int or Tuple[int, ...], got: {type(argnums).__name__}")
    if not chosen:
        raise ArgumentError("argnums must be non-empty")
    for i in chosen:
        if not isinstance(i, int):
            raise ArgumentError(
                f"argnums must be int or Tuple[int, ...], and each of them must be int, got: {shown(i)}"
            )
        if not -count <= i < count:
            raise ArgumentError(f"Got argnum={shown(i)}, but only {count} positional inputs")
    replaced = [i % count for i in chosen]
    if len(set(replaced)) != len(replaced):
        raise ArgumentError(f"argnums elements must be unique, got {argnums}")
    return replaced


def apart_from_aux(name: str, returned: Any) -> tuple[Any, Any]:
    """Outputs of a function, and what it returns besides.

    Raises
    ------
    ArgumentError : it has not returned a pair.
    """
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ArgumentError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True, got "
            f"{type(returned).__name__}"
        )
    return returned


def require_tensors(name: str, leaves: Sequence[Any], outputs: Any) -> None:
    """Refuse outputs of a function other than tensors, and none at all.

    Raises
    ------
    ArgumentError : they are not as they have to be.
    """
    if not leaves:
        raise ArgumentError(f"{name}: Expected f to be a function that has non-empty output (got output = {outputs!r})")
    for x in leaves:
        if not isinstance(x, TensorBase):
            raise ArgumentError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(x).__name__}"
            )


class Linearised:
    """One run of a function on fresh leaves, and its pullback.

    Parameters
    ----------
    writable : the function may write to its arguments, and with them to the primals.

    Attributes
    ----------
    outputs : what the function returned, with its history.
    order : the nodes between them and the primals.
    others : whether the outputs depend on other tensors that require grad.
    connected : whether the outputs depend on something outside that requires grad.
    nested : whether that is being differentiated too.
    result : the same for the caller: without history unless `nested`.
    """

    def __init__(
        self,
        function: Function,
        primals: tuple[Any, ...],
        has_aux: bool,
        name: str = "vjp(f, *primals)",
        writable: bool = False,
    ) -> None:
        leaves, self.structure = flatten(primals)
        outer = mode.is_grad_enabled()
        with mode.enable_grad():
            self.inner = [_fresh(x, writable) for x in leaves]
            first = next_number()
            given = [relay(x) for x in self.inner] if writable else list(self.inner)
            before = [x.grad_fn for x in given]
            with WrittenInside() as written:
                returned = function(*unflatten(self.structure, given))
            for x, own, node in zip(leaves, given, before, strict=True):
                if own.grad_fn is not node and isinstance(x, TensorBase) and x.requires_grad:
                    x.copy_(own)
        self.aux: Any = None
        if has_aux:
            returned, self.aux = apart_from_aux(name, returned)
        self.outputs = returned
        self.flat, self.out_structure = flatten(returned)
        roots = [x.edge for x in self.flat if isinstance(x, TensorBase) and x.edge is not None]
        outside: dict[int, Any] = {}
        self.order = collect(roots, first, outside)
        ours = {id(x.edge) for x in self.inner}
        self.others = any(key not in ours and edge not in stand_ins for key, edge in outside.items())
        self.connected = self.others or any(x.grad_fn is not None for x in self.inner)
        self.nested = outer and self.connected
        self.result = returned
        written.end([*self.flat, *flatten(self.aux)[0]], self.nested)
        if not self.nested:
            self.result = unflatten(self.out_structure, [_detached(x) for x in self.flat])
            extra, structure = flatten(self.aux)
            self.aux = unflatten(structure, [_detached(x) for x in extra])

    def pull(self, cotangents: Any, *, retain: bool) -> tuple[Any, ...]:
        """Cotangents of the primals for cotangents of the outputs."""
        given, structure = flatten(cotangents)
        if structure != self.out_structure:
            raise ArgumentError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {structure}, primal output: {self.out_structure}"
            )
        given = [lift(c) for c in given]
        pairs = [
            (y, c) for y, c in zip(self.flat, given, strict=True) if isinstance(y, TensorBase) and y.edge is not None
        ]
        create_graph = mode.is_grad_enabled() and (
            self.connected or any(isinstance(c, TensorBase) and c.requires_grad for c in given)
        )
        gradients = differentiate(
            [y for y, _ in pairs], [c for _, c in pairs], self.inner,
            create_graph=create_graph, retain=retain or self.connected, order=self.order, only=self.others,
        )  # fmt: skip
        return tuple(unflatten(self.structure, gradients))


def _fresh(x: Any, writable: bool) -> TensorBase:
    """A primal as a leaf of its own, or, where something outside may differentiate it too, as a view with history, or
    a copy, which stays as it is when the primal is written.
    """
    # a number is weak: float64, which gives way to the dtype of tensors with dimensions
    x = lift(np.array(x, np.float64 if isinstance(x, float) else None)) if isinstance(x, NUMBERS) else lift(x)
    if not isinstance(x, TensorBase):
        raise ArgumentError(f"a differentiated argument must be made of tensors, got {type(x).__name__}")
    if x.dtype.kind != "f":
        raise DTypeError(f"grad requires floating point inputs, but got {x.dtype}")
    if x.requires_grad:
        return x.clone() if writable else view_of(x)
    leaf = without_history(x)
    if mode.tracing or mode.inference_seen:
        leaf.requires_grad_()
    leaf._requires_grad = True  # at once: a new leaf is nothing that compiled programs rely on
    return leaf


def _detached(x: Any) -> Any:
    return without_history(x) if isinstance(x, TensorBase) and x.requires_grad else x


def _scalar(value: Any) -> TensorBase:
    if not isinstance(value, TensorBase):
        raise GradientError(f"Expected the function to return a scalar tensor, got {type(value).__name__}")
    if len(value.shape):
        raise GradientError(f"Expected the function to return a scalar tensor, got tensor with {value.ndim} dims")
    return value


__all__ = ["grad", "value_and_grad", "vjp"]
