"""The public functions as this engine offers them: recorded in a trace, run on arrays outside."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from common import binding, boundary, mode, out, surface
from common.autograd import func, transforms
from common.create import operand, operands
from common.tensor.base import TensorBase
from common.tree import flatten
from static.at_once import run_at_once
from static.jit import Function as Compiled
from static.jit import function as make

Function = Callable[..., Any]


def _recorded_body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    lines = []
    for x in tensors:
        others = tensors[1:] if x is tensors[0] else ["None"]  # None: only the first operand is made of a number
        lines.append(f"{x} = operand({', '.join([x, *others])})")
    lines += [f"{x} = operands({x})" for x in sequences]
    return [*lines, f"return {call}"]


def _public_body(tensors: list[str], sequences: list[str], call: str) -> list[str]:
    given = "".join(f"{x}, " for x in [*tensors, *(f"*each({x})" for x in sequences)])
    return [f"return {call} if recorded(({given})) else outside(lambda: {call}, ({given}))"]


def _recorded(operands: tuple[Any, ...]) -> bool:
    """Whether a trace, or the engine of a tensor among the operands, takes over."""
    if mode.current_trace() is not None:
        return True
    tensors = [x for x in operands if isinstance(x, TensorBase)]
    return bool(tensors) and all(x.home is None for x in tensors)


def _outside(call: Callable[[], Any], operands: tuple[Any, ...]) -> Any:
    """A call that no trace records: the graph of an operand does, or it runs at once on arrays."""
    for x in operands:
        if isinstance(x, TensorBase) and (home := x.home) is not None:
            with home:
                return call()
    return run_at_once(call)


def _each(xs: Any) -> Any:
    """A sequence of operands; of anything else, which will be refused, nothing."""
    return xs if isinstance(xs, (tuple, list)) else ()


def bind(names: dict[str, Any]) -> dict[str, Function]:
    """Functions of tensors."""
    bound = {}
    for name, function in names.items():
        converting = binding.bind(
            name,
            function,
            _recorded_body,
            __file__,
            write_out=out.write if name in out.NAMES else None,
            operand=operand,
            operands=operands,
        )
        bound[name] = binding.bind(
            name,
            converting,
            _public_body,
            __file__,
            recorded=_recorded,
            each=_each,
            outside=_outside,
            _stumbles=(),  # the function inside has looked at its arguments already
        )
        bound[name].__doc__ = converting.__doc__
    return bound


def bind_creation(names: dict[str, Any]) -> dict[str, Function]:
    """Functions that make tensors of sizes or data."""
    scope: dict[str, Any] = {"recorded": _recorded, "outside": _outside, "takes_operands": False}
    return {
        name: binding.bind(name, f, lambda _, __, call: _public_body([], [], call), __file__, **scope)
        for name, f in names.items()
    }


def _at_once_outside(construct: Function) -> Function:
    """Control flow that runs Python on arrays outside a trace."""

    @functools.wraps(construct)
    def bound(*args: Any, **kwargs: Any) -> Any:
        leaves = tuple(flatten((args, kwargs))[0])
        if _recorded(leaves):
            return construct(*args, **kwargs)
        return _outside(lambda: construct(*args, **kwargs), leaves)

    return bound


CONTROL: dict[str, Function] = surface.owned(
    {name: _at_once_outside(construct) for name, construct in surface.CONTROL.items()}, "static"
)
HOST: dict[str, Function] = surface.owned(
    {name: _at_once_outside(call) for name, call in surface.HOST.items()}, "static"
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
        program._maker = module, transform.__name__, (function, *args), kwargs
        return program

    return bound


@functools.wraps(transforms.vjp)
def _vjp(function: Function, *primals: Any, has_aux: bool = False) -> Any:
    if mode.current_trace() is not None:
        return transforms.vjp(function, *primals, has_aux=has_aux)

    def pull(primals: Any, cotangents: Any) -> Any:
        return transforms.vjp(function, *primals, has_aux=has_aux)[1](cotangents)

    returned, backward = _compiled(function, function)(*primals), _compiled(pull, function)

    def pullback(cotangents: Any) -> Any:
        return backward(primals, cotangents)

    return (returned[0], pullback, returned[1]) if has_aux else (returned, pullback)


@functools.wraps(func.jvp)
def _jvp(function: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    call = functools.partial(func.jvp, function, strict=strict, has_aux=has_aux)
    if mode.current_trace() is not None:
        return call(primals, tangents)
    return _compiled(lambda primals, tangents: call(primals, tangents), function)(primals, tangents)


@functools.wraps(func.linearize)
def _linearize(function: Function, *primals: Any) -> Any:
    if mode.current_trace() is not None:
        return func.linearize(function, *primals)
    push = _compiled(lambda primals, tangents: func.linearize(function, *primals)[1](*tangents), function)

    def jvp_fn(*tangents: Any) -> Any:
        return push(primals, tangents)

    return _compiled(function, function)(*primals), jvp_fn


TRANSFORMS: dict[str, Function] = surface.owned(
    {
        "grad": _compiled_outside(transforms.grad, "static"),
        "value_and_grad": _compiled_outside(transforms.value_and_grad, "static"),
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
    "functional_call": func.functional_call,
    "stack_module_state": func.stack_module_state,
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
