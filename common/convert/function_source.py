"""A function's source, and its code made anew: same file, lines and free names."""

from __future__ import annotations

import ast
import inspect
import linecache
import sysconfig
import textwrap
from types import CodeType, FunctionType
from typing import Any

from common.convert.syntax import RUNTIME
from common.core.errors import TraceError
from common.core.source_lines import is_user_file

_INSTALLED = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def is_users(code: CodeType) -> bool:
    """Whether code belongs to the user, and to no installed package."""
    name = code.co_filename
    return is_user_file(name) and not name.startswith(_INSTALLED) and not name.startswith("<frozen")


def parse(target: FunctionType) -> Any:
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


def compiled(node: Any, code: CodeType, free: tuple[str, ...]) -> CodeType:
    """The code of a definition inside a function that has its free names."""
    factory = ast.parse(f"def tw__factory({', '.join(free)}):\n    pass")
    (outer,) = factory.body
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [node]
    ast.fix_missing_locations(factory)
    module = compile(factory, code.co_filename, "exec", dont_inherit=True)
    maker = next(x for x in module.co_consts if isinstance(x, CodeType))
    return next(x for x in maker.co_consts if isinstance(x, CodeType))


def inner(code: CodeType, name: str) -> CodeType:
    """Code whose generated functions have the name of the user's: that is what is shown with a line."""
    own = name if code.co_name.startswith(RUNTIME) else code.co_name
    constants = tuple(inner(x, own) if isinstance(x, CodeType) else x for x in code.co_consts)
    return code.replace(co_consts=constants, co_name=own)
