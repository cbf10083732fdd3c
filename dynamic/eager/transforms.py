"""The functional transforms: a call of their result is a region, as the other engine compiles it as one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from common.api.offered_transforms import offered_transforms
from common.transforms import func, grad
from dynamic.eager.function import EagerFunction, inlining

Function = Callable[..., Any]


def _as_function(transform: Function, module: str) -> Function:
    """A transform whose result is one node: numbers are weak, inner functions are inlined; `module` offers it."""

    @functools.wraps(transform)
    def bound(target: Function, *args: Any, **kwargs: Any) -> Function:
        transformed = EagerFunction(transform(target, *args, **kwargs), always=True)
        transformed._maker = module, transform.__name__, (target, *args), kwargs
        return transformed

    return bound


@functools.wraps(grad.vjp)
def _vjp(target: Function, *primals: Any, has_aux: bool = False) -> Any:
    with inlining():
        return grad.vjp(target, *primals, has_aux=has_aux)


@functools.wraps(func.jvp)
def _jvp(target: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    call = functools.partial(func.jvp, target, strict=strict, has_aux=has_aux)
    return EagerFunction(call, always=True)(primals, tangents)


@functools.wraps(func.linearize)
def _linearize(target: Function, *primals: Any) -> Any:
    with inlining():
        y, push = func.linearize(target, *primals)
    return y, EagerFunction(push, always=True)


TRANSFORMS, FUNC = offered_transforms("dynamic", _as_function, _vjp, _jvp, _linearize)
