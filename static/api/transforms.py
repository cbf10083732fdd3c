"""The functional transforms: outside a trace their results are compiled when called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from common.api.offered_transforms import offered_transforms
from common.autograd.backward import relay
from common.autograd.region_calls import regional
from common.core import mode
from common.core.errors import TraceError
from common.core.tree import flatten, unflatten
from common.tensor.base import TensorBase
from common.transforms import func, grad
from static.jit.function import CompiledFunction
from static.jit.function import function as make

Function = Callable[..., Any]


def _options(function: Function) -> dict[str, Any]:
    """The options of a compiled function, or of a transform of one, that a program made around it shares."""
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


def _recorded(function: Function, primals: Any) -> Function:
    """The function that a pullback goes back through: outside a trace one compiled node, which runs once.

    A pullback that may be differentiated itself goes on from each op that the function records.
    """
    leaves = flatten(primals)[0]
    nested = mode.is_grad_enabled() and any(isinstance(x, TensorBase) and x.requires_grad for x in leaves)
    return function if nested or mode.current_trace() is not None else _compiled(function, function)


def _require_pure(program: Any) -> None:
    """Refuse a pullback in a trace, which would run a function again that has written something.

    Raises
    ------
    TraceError : it has.
    """
    if program.newest.raw.effects:
        raise TraceError(
            f"a pullback of {program.__name__}, which draws random numbers or writes to tensors from outside, cannot "
            "be called in a function that is being traced: call vjp() or linearize() there too"
        )


@functools.wraps(grad.vjp)
def _vjp(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    program: Any = _recorded(function, primals)
    y, pull, *aux = grad.vjp(program, *primals, has_aux=has_aux)
    if program is function:
        return y, pull, *aux

    def pullback(cotangents: Any) -> Any:
        if mode.current_trace() is None:
            return pull(cotangents)
        _require_pure(program)
        return grad.vjp(function, *primals, has_aux=has_aux)[1](cotangents)

    return y, pullback, *aux


@functools.wraps(func.jvp)
def _jvp(function: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    call = functools.partial(func.jvp, function, strict=strict, has_aux=has_aux)
    if mode.current_trace() is not None:
        return regional(call)(primals, tangents)
    func.require_tangents(primals, tangents)
    return _compiled(lambda primals, tangents: call(primals, tangents), function)(primals, tangents)


@functools.wraps(func.linearize)
def _linearize(function: Function, *primals: Any) -> Any:
    @functools.wraps(function)
    def writable(*args: Any) -> Any:
        leaves, structure = flatten(args)
        return function(*unflatten(structure, [relay(x) if getattr(x, "requires_grad", False) else x for x in leaves]))

    program: Any = _recorded(writable, primals)
    y, push = func.linearize(program, *primals)
    if program is writable:
        return y, regional(push)
    # what writes nothing may run again, as one program with its tangents
    again = _compiled(lambda primals, tangents: func.linearize(function, *primals)[1](*tangents), function)

    def jvp_fn(*tangents: Any) -> Any:
        if mode.current_trace() is not None:
            _require_pure(program)
        elif program.newest.raw.effects:
            return push(*tangents)
        return again(primals, tangents)

    return y, jvp_fn


TRANSFORMS, FUNC = offered_transforms("static", _compiled_outside, _vjp, _jvp, _linearize)
