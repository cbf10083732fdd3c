"""The functional transforms: outside a trace their results are compiled when called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from common.api.offered_transforms import offered_transforms
from common.autograd.region_calls import regional
from common.core import mode
from common.core.tree import flatten
from common.tensor.base import TensorBase
from common.transforms import func, grad
from static.jit.function import CompiledFunction
from static.jit.function import function as make

Function = Callable[..., Any]


def _options(function: Function) -> dict[str, Any]:
    """Those of a compiled function, or of a transform of one, that a program made around it shares."""
    if not isinstance(function, CompiledFunction):
        return {}
    names = ("interpret", "passes", "max_traces")
    guard = "guard" if function.control_flow == "guard" else None  # what has been converted stays so
    return {"control_flow": guard, **function.options._asdict(), **{name: getattr(function, name) for name in names}}


def _compiled(call: Function, around: Function) -> Any:
    """A program that is made around a function."""
    return make(call, **_options(around))


def _compiled_outside(transform: Function, module: str) -> Function:
    """A transform whose functions are compiled when they are called outside a trace; `module` offers it."""

    @functools.wraps(transform)
    def bound(function: Function, *args: Any, **kwargs: Any) -> Function:
        program: CompiledFunction = _compiled(transform(function, *args, **kwargs), function)
        program.inlined = regional(program.target)
        program._maker = module, transform.__name__, (function, *args), kwargs
        return program

    return bound


def _needs_history(primals: Any) -> bool:
    """Whether a pullback is to be differentiated itself: then it goes on from what the function has recorded."""
    leaves = flatten(primals)[0]
    return mode.is_grad_enabled() and any(isinstance(x, TensorBase) and x.requires_grad for x in leaves)


@functools.wraps(grad.vjp)
def _vjp(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    if mode.current_trace() is not None or _needs_history(primals):
        return grad.vjp(function, *primals, has_aux=has_aux)

    def pull(primals: Any, cotangents: Any) -> Any:
        return grad.vjp(function, *primals, has_aux=has_aux)[1](cotangents)

    returned, backward = _compiled(function, function)(*primals), _compiled(pull, function)

    outputs, aux = grad.apart_from_aux("vjp(f, *primals)", returned) if has_aux else (returned, None)
    grad.require_tensors("vjp(f, *primals)", flatten(outputs)[0], outputs)

    def pullback(cotangents: Any) -> Any:
        return backward(primals, cotangents)

    return (outputs, pullback, aux) if has_aux else (outputs, pullback)


@functools.wraps(func.jvp)
def _jvp(function: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    call = functools.partial(func.jvp, function, strict=strict, has_aux=has_aux)
    if mode.current_trace() is not None:
        return regional(call)(primals, tangents)
    func.require_tangents(primals, tangents)
    return _compiled(lambda primals, tangents: call(primals, tangents), function)(primals, tangents)


@functools.wraps(func.linearize)
def _linearize(function: Function, *primals: Any) -> Any:
    if mode.current_trace() is not None or _needs_history(primals):
        y, push = func.linearize(function, *primals)
        return y, regional(push)
    push = _compiled(lambda primals, tangents: func.linearize(function, *primals)[1](*tangents), function)

    def jvp_fn(*tangents: Any) -> Any:
        return push(primals, tangents)

    return _compiled(function, function)(*primals), jvp_fn


TRANSFORMS, FUNC = offered_transforms("static", _compiled_outside, _vjp, _jvp, _linearize)
