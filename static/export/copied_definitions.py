"""Definitions of a module as text that stands alone: with those that they use, and without annotations."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module

MODULES = (
    "common.kernels.linalg.elimination", "common.kernels.linalg.infos", "common.kernels.linalg.lapack",
    "common.kernels.linalg.symmetric", "common.kernels.math.scipy_special", "common.kernels.math.recurrences",
    "common.kernels.math.quantiles",
)  # fmt: skip
"""Modules of the functions that kernels in Python call: no two of them define the same name."""
_ERRORS = {"LinAlgError": "np.linalg.LinAlgError", "ArgumentError": "ValueError"}


@cache
def _all() -> dict[str, tuple[ast.stmt, str]]:
    return {name: found for module in MODULES for name, found in _definitions(module).items()}


def names() -> frozenset[str]:
    """All names that may be copied."""
    return frozenset(_all())


def copy_definitions(name: str, into: dict[str, str]) -> None:
    """Add the text of a definition, after those that it uses.

    Parameters
    ----------
    into : name -> text.
    """
    statement, text = _all()[name]
    into.setdefault(name, "")
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id in _all() and node.id not in into:
            copy_definitions(node.id, into)
    into[name] = into.pop(name) or text


@cache
def _definitions(module: str) -> dict[str, tuple[ast.stmt, str]]:
    """The functions and tables of a module, without annotations."""
    source = inspect.getsource(import_module(module))
    found: dict[str, tuple[ast.stmt, str]] = {}
    for statement in ast.parse(source).body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.Tuple()):
                pass
            case _:
                continue
        text = _bare(source, statement)
        found[name] = ast.parse(text).body[0], text
    return found


def _bare(source: str, statement: ast.stmt) -> str:
    """The text of a statement without annotations, with errors that Python and numpy have."""
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    first, last = starts[statement.lineno - 1], starts[statement.end_lineno or 0]
    cuts = [(starts[line - 1] + column, starts[end - 1] + to) for line, column, end, to in _annotations(statement)]
    text, at = "", first
    for start, end in sorted(cuts):
        before = source[at:start].rstrip()
        text, at = text + before.removesuffix("->").rstrip().removesuffix(":"), end
    text = re.sub(r"  # type: .*", "", text + source[at:last]).rstrip()
    for own, builtin in _ERRORS.items():
        text = re.sub(rf"(?<![\w.]){own}\b", builtin, text)
    return text


def _annotations(statement: ast.stmt) -> Iterator[tuple[int, int, int, int]]:
    for node in ast.walk(statement):
        found = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if isinstance(found, ast.expr):
            yield found.lineno, found.col_offset, found.end_lineno or 0, found.end_col_offset or 0
