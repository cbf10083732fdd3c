"""The public functions as this engine offers them, in the graph of a session's tensors too; transforms are compiled."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from common.api import surface
from common.api.offered import bind_creation as bind_creation
from common.api.offered import bind_function, function_body
from common.core import mode, pickling
from common.core.lazy import Late
from common.core.tree import flatten
from common.tensor import boundary
from common.tensor.base import TensorBase
from static.jit.shown import file_modules

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


def bind_control(names: Mapping[str, Any]) -> dict[str, Function]:
    """Constructs of control flow, and calls of Python functions."""
    own = {name: _recorded_at_home(construct) for name, construct in names.items()}
    return {name: boundary.published(x) for name, x in surface.owned(own, "static").items()}


def bind_transforms(names: Mapping[str, Any]) -> dict[str, Function]:
    """Transforms of functions, which are compiled."""
    from static.api.transforms import TRANSFORMS

    return {name: boundary.published(TRANSFORMS[name]) for name in names}


def _as_program(f: Any) -> Any:
    """A compiled function that has been called as its program, for a pickle; None if it has none."""
    if not (getattr(f, "traces", None) or getattr(f, "programs", None)):
        return None
    reduced: Any = importlib.import_module("static.export.program_file").reduced(f)
    return reduced


pickling.otherwise.append(_as_program)
file_modules.append(functools.partial(importlib.import_module, "static.export.program_file"))

#: Functions of `static.export`.
EXPORTS: Any = Late(
    {
        "static.export.held_graph": "from_networkx",
        "static.export.c_library": "export_library",
        "static.export.numba_module": "export_numba",
        "static.export.onnx_model": "export_onnx",
    }
)

#: Functions of both engines that take programs, too.
OF_PROGRAMS: dict[str, Any] = dict.fromkeys(["trace", "save", "load"])


def bind_of_programs(names: dict[str, Any]) -> dict[str, Any]:
    """Functions that do for programs what the others of these names do for tensors."""
    offered = importlib.import_module("static.api.programs")
    general = {"trace": lambda: bind({"trace": surface.FUNCTIONS["trace"]})["trace"]}
    others = surface.OUTSIDE
    made = {
        name: getattr(offered, f"bind_{name}")(general[name]() if name in general else others[name]) for name in names
    }
    return {name: boundary.published(x) for name, x in surface.owned(made, "static").items()}


def bind_room(names: dict[str, Any]) -> dict[str, Any]:
    """Rooms of this engine alone."""
    return {name: importlib.import_module(f"static.{name}") for name in names}


ROOMS: dict[str, Any] = {"export": None, "summary": None}


#: Graphs and sessions; loaded when one of these names is first asked for.
SESSION: dict[str, Any] = dict.fromkeys(
    ["AUTO_REUSE", "Graph", "GraphKeys", "InteractiveSession", "Operation", "Saver", "Session", "Variable",
     "add_to_collection", "assign", "assign_add", "assign_sub", "constant", "control_dependencies", "get_collection",
     "get_default_graph", "get_default_session", "get_variable", "global_variables", "global_variables_initializer",
     "gradients", "group", "identity", "name_scope", "no_op", "placeholder", "placeholder_with_default",
     "reset_default_graph", "set_random_seed", "trainable_variables", "variable_scope", "variables_initializer"]
)  # fmt: skip


def bind_session(names: dict[str, Any]) -> dict[str, Any]:
    """Functions of `static.session` under these names."""
    offered = importlib.import_module("static.session")
    for name in SESSION:  # all at once: what one of them gives is of the others' classes
        boundary.published(getattr(offered, name))
    return {name: boundary.published(getattr(offered, name)) for name in names}
