"""The public functions as this engine offers them, in the graph of a session's tensors too; transforms are compiled."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Any

from common.api import surface
from common.api.offered import bind_creation as bind_creation
from common.api.offered import bind_function, function_body
from common.autograd.region_calls import regional
from common.core import mode
from common.core.tree import flatten
from common.nn.functional_call import functional_call, stack_module_state
from common.tensor import boundary
from common.tensor.base import TensorBase
from common.transforms import func, grad
from static.jit.function import Function as Compiled
from static.jit.function import function as make

Function = Callable[..., Any]


def _home_of(operands: Iterable[Any]) -> Any:
    """The graph of a session that records a call outside a trace, if one of the operands belongs to one."""
    if mode.current_trace() is None:
        for x in operands:
            if isinstance(x, TensorBase) and (home := x.home) is not None:
                return home
    return None


def _each(xs: Any) -> Any:
    """A sequence of operands; of anything else, which will be refused, nothing."""
    return xs if isinstance(xs, (tuple, list)) else ()


def _body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    given = "".join(f"{x}, " for x in [*tensors, *(f"*each({x})" for x in sequences)])
    lines = function_body(tensors, sequences, call)
    at_home = [f"if (home := home_of(({given}))) is not None:", "    with home:", *(f"        {x}" for x in lines)]
    return [*at_home, *lines]


def bind(names: dict[str, Any]) -> dict[str, Function]:
    """Functions of tensors."""
    scope: dict[str, Any] = {"home_of": _home_of, "each": _each}
    return {name: bind_function(name, function, _body, __file__, **scope) for name, function in names.items()}


def _recorded_at_home(construct: Function) -> Function:
    """Control flow that a session's graph records, if an operand belongs to one."""

    @functools.wraps(construct)
    def bound(*args: Any, **kwargs: Any) -> Any:
        home = _home_of(flatten((args, kwargs))[0])
        if home is None:
            return construct(*args, **kwargs)
        with home:
            return construct(*args, **kwargs)

    return bound


CONTROL: dict[str, Function] = surface.owned(
    {name: _recorded_at_home(construct) for name, construct in surface.CONTROL.items()}, "static"
)
HOST: dict[str, Function] = surface.owned(
    {name: _recorded_at_home(call) for name, call in surface.HOST.items()}, "static"
)


def _options(function: Function) -> dict[str, Any]:
    """Those of a compiled function, or of a transform of one, that a program made around it shares."""
    if not isinstance(function, Compiled):
        return {}
    names = ("interpret", "passes", "max_traces", "compile")
    guard = "guard" if function.control_flow == "guard" else None  # what has been converted stays so
    return {"control_flow": guard, **function.options._asdict(), **{name: getattr(function, name) for name in names}}


def _compiled(call: Function, around: Function) -> Any:
    """A program that is made around a function."""
    return make(call, **_options(around))


def _compiled_outside(transform: Function, module: str = "static.func") -> Function:
    """A transform whose functions are compiled when they are called outside a trace; `module` offers it."""

    @functools.wraps(transform)
    def bound(function: Function, *args: Any, **kwargs: Any) -> Function:
        program: Compiled = _compiled(transform(function, *args, **kwargs), function)
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

    def pullback(cotangents: Any) -> Any:
        return backward(primals, cotangents)

    return (returned[0], pullback, returned[1]) if has_aux else (returned, pullback)


@functools.wraps(func.jvp)
def _jvp(function: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    call = functools.partial(func.jvp, function, strict=strict, has_aux=has_aux)
    if mode.current_trace() is not None:
        return regional(call)(primals, tangents)
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


TRANSFORMS: dict[str, Function] = surface.owned(
    {
        "grad": _compiled_outside(grad.grad, "static"),
        "value_and_grad": _compiled_outside(grad.value_and_grad, "static"),
        "vjp": _vjp,
        "vmap": _compiled_outside(func.vmap, "static"),
    },
    "static",
)

#: Those of `func`.
FUNC: dict[str, Function] = {
    **surface.owned(
        {
            **{
                name: _compiled_outside(getattr(func, name))
                for name in ("grad", "grad_and_value", "hessian", "jacfwd", "jacrev")
            },
            "jvp": _jvp,
            "linearize": _linearize,
        },
        "static.func",
    ),
    "functional_call": functional_call,
    "stack_module_state": stack_module_state,
    "vjp": _vjp,
    "vmap": TRANSFORMS["vmap"],
}

#: Graphs and sessions; loaded when one of these names is first asked for.
SESSION: dict[str, Any] = dict.fromkeys(
    ["AUTO_REUSE", "Graph", "GraphKeys", "InteractiveSession", "Operation", "Saver", "Session", "Variable",
     "add_to_collection", "assign", "assign_add", "assign_sub", "constant", "control_dependencies", "get_collection",
     "get_default_graph", "get_default_session", "get_variable", "global_variables", "global_variables_initializer",
     "gradients", "group", "identity", "name_scope", "no_op", "placeholder", "placeholder_with_default",
     "reset_default_graph", "set_random_seed", "trainable_variables", "variable_scope", "variables_initializer"]
)  # fmt: skip


def bind_session(names: dict[str, Any]) -> dict[str, Any]:
    """What `static.session` offers under these names."""
    offered = importlib.import_module("static.session")
    for name in SESSION:  # all at once: what one of them gives is of the others' classes
        boundary.published(getattr(offered, name))
    return {name: boundary.published(getattr(offered, name)) for name in names}
