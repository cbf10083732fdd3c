"""Gradients and parameters as a whole: clipping, and parameters as one vector.

Clipping gives every parameter a new gradient, in traced programs too; it writes to no gradient's memory.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, GradientError
from common.core.int_arguments import members
from common.core.spec import numel
from common.nn import functions as F
from common.nn.module import Module
from common.random.forked_stream import fork_rng
from common.tensor.base import TensorBase

INF = float("inf")


def _listed(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, (TensorBase, np.ndarray)) else list(tensors)


def _norm(x: Any, order: float) -> Any:
    """The norm of all elements, 0-d."""
    if order == INF:
        return F.amax(F.abs(x)) if numel(x.shape) else F.sum(x)
    if order == 0:
        return F.sum(F.ne(x, 0).to(x.dtype))
    if order == 1:
        return F.sum(F.abs(x))
    return F.sqrt(F.sum(F.square(x))) if order == 2 else F.pow(F.sum(F.pow(F.abs(x), order)), 1 / order)


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Any:
    """The norm of the norms of tensors: that of all their elements.

    Parameters
    ----------
    tensors : one or several, (...).
    norm_type : the order: 2, 1, 0 (elements that are not 0), inf, or any other number.
    error_if_nonfinite : refuse a norm that is nan or infinite; looks at it, so not inside a traced function.
    foreach : accepted; it changes nothing.

    Returns
    -------
    tensor
        () in the dtype of the first tensor; of no tensors 0.

    Raises
    ------
    GradientError : the norm is not finite, and `error_if_nonfinite`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.nn.utils.get_total_norm([tw.tensor([3.0]), tw.tensor([[4.0]])])
    tensor(5.)
    """
    order = float(norm_type)
    given = _listed(tensors)
    if not given:
        from common.tensor.arrays import to_array
        from common.tensor.create import lift

        return lift(to_array(0.0))
    norms = [_norm(x, order).to(given[0].dtype) for x in given]
    total = norms[0] if len(norms) == 1 else _norm(F.stack(norms), order)
    if error_if_nonfinite and not bool(total - total == 0):
        raise GradientError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None) -> None:
    """Scale gradients by ``max_norm / (total_norm + 1e-6)`` where that is below 1.

    Parameters
    ----------
    parameters : one or several; those without gradient are left alone.
    max_norm : the norm that the gradients have afterwards, at most.
    total_norm : () as `get_total_norm` gives it.
    foreach : accepted; it changes nothing.
    """
    with mode.GradSwitch(False):
        factor = F.clamp(max_norm / (total_norm + 1e-6), max=1.0)
        for p in _listed(parameters):
            g = p.grad
            if g is not None:
                g.detach().mul_(factor.to(g.dtype))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scale the gradients of parameters so that their norm as one vector is at most `max_norm`.

    Parameters
    ----------
    parameters : one or several; those without gradient are left alone.
    max_norm : the largest norm.
    norm_type : the order of the norm, see `get_total_norm`.
    error_if_nonfinite : refuse a norm that is nan or infinite; looks at it, so not inside a traced function.
    foreach : accepted; it changes nothing.

    Returns
    -------
    tensor
        () the norm before.

    Raises
    ------
    GradientError : the norm is not finite, and `error_if_nonfinite`; nothing is changed.

    References
    ----------
    Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks, 2013.

    Examples
    --------
    >>> import dynamic as tw
    >>> w = tw.nn.Parameter([3.0, 4.0])
    >>> (w * w).sum().backward()
    >>> tw.nn.utils.clip_grad_norm_(w, 1.0)
    tensor(10.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    members = _listed(parameters)
    with mode.GradSwitch(False):
        grads = [g.detach() for p in members if (g := p.grad) is not None]
        total = get_total_norm(grads, norm_type, error_if_nonfinite)
        clip_grads_with_norm_(members, max_norm, total)
    return total


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of the gradients to [-clip_value, clip_value].

    Parameters
    ----------
    parameters : one or several; those without gradient are left alone.
    clip_value : the largest magnitude.
    foreach : accepted; it changes nothing.
    """
    most = float(clip_value)
    with mode.GradSwitch(False):
        for p in _listed(parameters):
            g = p.grad
            if g is not None:
                (g.detach() if g.requires_grad else g).clamp_(-most, most)


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """The elements of all parameters, one after the other.

    Parameters
    ----------
    parameters : (...) each, of one dtype.

    Returns
    -------
    tensor
        (n,), with history.
    """
    return F.cat([F.reshape(p, (-1,)) for p in members(parameters, "parameters_to_vector", "parameters")])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Write a vector's elements to parameters: the inverse of `parameters_to_vector`.

    Parameters
    ----------
    vec : (n,)
    parameters : (...) each, together of n elements.

    Raises
    ------
    ArgumentError : `vec` is no tensor of n elements.
    """
    targets = members(parameters, "vector_to_parameters", "parameters")
    sizes = [numel(p.shape) for p in targets]
    count = 0
    for n in sizes:
        count += n
    if not isinstance(vec, TensorBase) or vec.ndim != 1 or vec.shape[0] != count:
        raise ArgumentError(f"expected a vector of {count} elements, got {getattr(vec, 'shape', type(vec).__name__)}")
    start = 0
    with mode.GradSwitch(False):
        for p, n in zip(targets, sizes, strict=True):
            p.copy_(F.reshape(vec[start : start + n], p.shape))
            start += n


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """The older name of `clip_grad_norm_`."""
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def flatten_dense_tensors(tensors: Iterable[Any]) -> Any:
    """Tensors (...) of one dtype as one vector (elements,)."""
    return F.cat([F.reshape(x, (-1,)) for x in _listed(tensors)])


def unflatten_dense_tensors(flat: Any, tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Views of a vector (elements,) in the shapes of tensors."""
    parts, start = [], 0
    for x in _listed(tensors):
        count = numel(x.shape)
        parts.append(F.reshape(flat[start : start + count], tuple(x.shape)))
        start += count
    return tuple(parts)


def take_tensors(tensors: Iterable[Any], size_limit: int) -> Iterator[list[Any]]:
    """Tensors of one dtype together, at most `size_limit` bytes of them: what is sent at once to other processes."""
    begun: dict[Any, list[Any]] = {}
    for x in _listed(tensors):
        group = begun.setdefault(x.dtype, [])
        if group and sum(y.nbytes for y in group) + x.nbytes > size_limit:
            yield group
            group = begun[x.dtype] = []
        group.append(x)
    yield from begun.values()


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters are to be set: what they hold is not to be relied on, and no random stream goes on.

    Parameters
    ----------
    module_cls : a class of modules that takes a ``device``.
    args, kwargs : its arguments.

    Raises
    ------
    ArgumentError : another class.
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise ArgumentError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise ArgumentError("Module must support a 'device' arg to skip initialization")
    with fork_rng():
        return module_cls(*args, **kwargs)


__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "parameters_to_vector", "skip_init", "vector_to_parameters",
]  # fmt: skip
