"""Functions that converted code calls: Python's control flow, or `common.control` where a tensor decides.

States are passed as values by name. A name without a value is `UNSET`. What a loop or a branch would give a value only
sometimes is `Lost` afterwards: used, it says so.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import CellType, FunctionType, MethodType
from typing import Any

from common.control import print_assert
from common.convert.function_source import compiled, inner, is_users, parse
from common.convert.if_statements import if_, if_return
from common.convert.logic import and_, chain, if_expression, not_, or_
from common.convert.loop_statements import for_, range_, while_
from common.convert.name_states import UNSET, Lost, decides, values, where_now
from common.convert.rewrite import rewrite_function
from common.convert.syntax import RUNTIME
from common.core import mode
from common.core.dtypes import bool_, float64, int64
from common.core.errors import TraceError
from common.core.source_lines import locate, user_frame
from common.core.tree import flatten
from common.core.weak import Alive, WhileKeysLive
from common.nn.module import Module
from common.tensor.base import TensorBase


def result(x: Any) -> Any:
    """The result of a function.

    Raises
    ------
    TraceError : a value of it exists on some paths only.
    """
    for part in flatten(x)[0]:
        if isinstance(part, Lost):
            raise TraceError(f"{where_now()}: the function returns {part!r}")
    return x


def assert_(test: Any, message: Callable[[], Any]) -> None:
    """``assert test, message()``."""
    if decides(test):
        print_assert.assert_(test, str(message()))
    else:
        assert test, message()


def plain(x: Any, line: int, reason: str) -> Any:
    """The condition of a statement that was not converted.

    Raises
    ------
    TraceError : it is a tensor.
    """
    if decides(x):
        file, at, function = locate(*user_frame(2))
        raise TraceError(
            f"{file}:{at} in {function}: this statement depends on a tensor and cannot be converted, because of line "
            f"{line}: {reason}"
        )
    return x


def item(x: Any) -> Any:
    """``x.item()``: of a tensor, the element as a 0-d tensor of 64 bits that has no history."""
    if not isinstance(x, TensorBase):
        return x.item()
    with mode.no_grad():
        wide = x if x.dtype == bool_ else x.to(float64 if x.dtype.kind == "f" else int64)
        return wide.detach().reshape(())


__all__ = [
    "UNSET", "and_", "assert_", "callee", "chain", "convert", "for_", "if_", "if_expression", "if_return", "item",
    "not_", "or_", "plain", "range_", "result", "values", "while_",
]  # fmt: skip


_made: WhileKeysLive[Any, Any] = WhileKeysLive()


_converted: Alive[Any] = Alive()


_modules: dict[type, type] = {}


def convert(target: Any) -> Any:
    """A function whose control flow may depend on tensors.

    Parameters
    ----------
    target : a Python function or method whose source is there; functions that it calls are converted as well, if they
        are Python functions with source that belong to no installed package.

    Raises
    ------
    TraceError : there is no source, or it cannot be rewritten.
    """
    if isinstance(target, MethodType):
        return MethodType(convert(target.__func__), target.__self__)
    if not isinstance(target, FunctionType):
        raise TraceError(
            f"{target!r} cannot be converted: control_flow='convert' takes a Python function; convert those inside"
        )
    if target in _converted:
        return target
    made = _made.get(target)
    if made is None:
        made = _made.put(target, _convert(target))
        _converted.add(made)
    return made


def callee(target: Any) -> Any:
    """The function to call in place of a function that converted code calls."""
    if isinstance(target, MethodType):
        inner = callee(target.__func__)
        return target if inner is target.__func__ else MethodType(inner, target.__self__)
    if isinstance(target, Module):
        return _module(target)
    if type(target) is not FunctionType or target in _converted or not is_users(target.__code__):
        return target
    if target.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return target
    try:
        return convert(target)
    except TraceError:
        return target  # without source it runs as it is, and refuses what it cannot decide


def _module(module: Module) -> Module:
    """A module whose `forward` is converted; it shares everything with the other."""
    kind = type(module)
    forward = callee(kind.forward)
    if forward is kind.forward:
        return module
    if kind not in _modules:
        members = {"forward": forward, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
        _modules[kind] = type(kind.__name__, (kind,), members)
    made: Module = object.__new__(_modules[kind])
    object.__setattr__(made, "__dict__", module.__dict__)
    return made


def _convert(target: FunctionType) -> FunctionType:
    code = target.__code__
    node = parse(target)
    owner = target.__qualname__.rpartition(".")[0].rpartition(".")[2]
    rewrite_function(node, code.co_filename, "" if owner == "<locals>" else owner)
    cells = dict(zip(code.co_freevars, target.__closure__ or (), strict=True))
    cells[RUNTIME] = CellType(sys.modules[__name__])
    made = inner(compiled(node, code, tuple(cells)), code.co_name)
    closure = tuple(cells[name] for name in made.co_freevars)
    converted = FunctionType(made, target.__globals__, target.__name__, target.__defaults__, closure)
    converted.__kwdefaults__, converted.__dict__ = target.__kwdefaults__, dict(target.__dict__)
    converted.__qualname__, converted.__module__ = target.__qualname__, target.__module__
    return converted
