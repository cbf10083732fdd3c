"""A function as converted code: same file, lines, globals, closure and defaults."""

from __future__ import annotations

import ast
import inspect
import linecache
import sysconfig
import textwrap
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from common.convert.nodes import RUNTIME
from common.convert.rewrite import rewrite_function
from common.errors import TraceError
from common.frames import is_user_file
from common.nn.module import Module

_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_converted: WeakSet[Any] = WeakSet()
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
    if target not in _made:
        _made[target] = _convert(target)
        _converted.add(_made[target])
    return _made[target]


def callee(target: Any) -> Any:
    """What to call in place of a function that converted code calls."""
    if isinstance(target, MethodType):
        inner = callee(target.__func__)
        return target if inner is target.__func__ else MethodType(inner, target.__self__)
    if isinstance(target, Module):
        return _module(target)
    if type(target) is not FunctionType or target in _converted or not _is_users(target.__code__):
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


def _is_users(code: CodeType) -> bool:
    name = code.co_filename
    return is_user_file(name) and not name.startswith(_INSTALLED) and not name.startswith("<frozen")


def _convert(target: FunctionType) -> FunctionType:
    code = target.__code__
    node = _parse(target)
    owner = target.__qualname__.rpartition(".")[0].rpartition(".")[2]
    rewrite_function(node, code.co_filename, "" if owner == "<locals>" else owner)
    cells = dict(zip(code.co_freevars, target.__closure__ or (), strict=True))
    from common.convert import runtime

    cells[RUNTIME] = CellType(runtime)
    made = _inner(_compiled(node, code, tuple(cells)), code.co_name)
    closure = tuple(cells[name] for name in made.co_freevars)
    converted = FunctionType(made, target.__globals__, target.__name__, target.__defaults__, closure)
    converted.__kwdefaults__, converted.__dict__ = target.__kwdefaults__, dict(target.__dict__)
    converted.__qualname__, converted.__module__ = target.__qualname__, target.__module__
    return converted


def _parse(target: FunctionType) -> Any:
    """The definition of a function, its lines those of the file."""
    code = target.__code__
    try:
        lines, start = inspect.getsourcelines(code)
    except (OSError, TypeError, IndentationError) as error:
        raise TraceError(
            f"{target.__qualname__} cannot be converted: its source is not available ({error}). Put it into a file"
        ) from None
    if target.__name__ == "<lambda>":
        return _lambda(code)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, start - 1)
    (node,) = (x for x in tree.body if isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef)))
    node.decorator_list, node.name = [], f"{RUNTIME}function"  # its own name is a global, or free
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
        if argument is not None:
            argument.annotation = None
    node.returns = None
    node.args.defaults = [ast.copy_location(ast.Constant(None), x) for x in node.args.defaults]
    node.args.kw_defaults = [
        None if x is None else ast.copy_location(ast.Constant(None), x) for x in node.args.kw_defaults
    ]
    return node


def _lambda(code: CodeType) -> Any:
    """A lambda: the one of its file that begins where the code does."""
    file = code.co_filename
    text = "".join(linecache.getlines(file))
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    places = {(line, column) for line, _, column, _ in code.co_positions() if line and column is not None}
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Lambda):
            given = [x.arg for x in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if tuple(given) == names and any(_inside(place, node.body) for place in places):
                found.append(node)
    if not found:
        raise TraceError(f"a lambda at {file}:{code.co_firstlineno} cannot be converted: write a def")
    node = found[-1]
    body = ast.copy_location(ast.Return(node.body), node.body)
    made = ast.FunctionDef("tw__lambda", node.args, [body], [], lineno=node.lineno, col_offset=node.col_offset)
    made.end_lineno, made.end_col_offset = node.end_lineno, node.end_col_offset
    made.args.defaults = [ast.copy_location(ast.Constant(None), x) for x in made.args.defaults]
    made.args.kw_defaults = [
        None if x is None else ast.copy_location(ast.Constant(None), x) for x in made.args.kw_defaults
    ]
    return made


def _inside(place: tuple[int, int], node: ast.expr) -> bool:
    return (node.lineno, node.col_offset) <= place < (node.end_lineno or 0, node.end_col_offset or 0)


def _compiled(node: Any, code: CodeType, free: tuple[str, ...]) -> CodeType:
    """The code of a definition inside a function that has its free names."""
    factory = ast.parse(f"def tw__factory({', '.join(free)}):\n    pass")
    (outer,) = factory.body
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [node]
    ast.fix_missing_locations(factory)
    module = compile(factory, code.co_filename, "exec", dont_inherit=True)
    maker = next(x for x in module.co_consts if isinstance(x, CodeType))
    return next(x for x in maker.co_consts if isinstance(x, CodeType))


def _inner(code: CodeType, name: str) -> CodeType:
    """Code whose generated functions have the name of the user's: that is what is shown with a line."""
    own = name if code.co_name.startswith(RUNTIME) else code.co_name
    constants = tuple(_inner(x, own) if isinstance(x, CodeType) else x for x in code.co_consts)
    return code.replace(co_consts=constants, co_name=own)


__all__ = ["callee", "convert"]
