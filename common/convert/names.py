"""The names that a piece of a function sets and reads, and reasons why a piece cannot be converted."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.While)


def walk(nodes: Sequence[ast.AST], into: tuple[type, ...] = ()) -> Iterator[ast.AST]:
    """All nodes below some, without the bodies of other functions, and of what else is in `into`."""
    for node in nodes:
        yield node
        if not isinstance(node, (*SCOPES, *into)):
            yield from walk(list(ast.iter_child_nodes(node)), into)


def assigned(nodes: Sequence[ast.AST]) -> list[str]:
    """Names that are set, also by a write to an element of theirs, in the order in which they appear."""
    names = []
    for node in walk(nodes, COMPREHENSIONS):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.alias):
            names.append((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.append(node.name)
        else:
            names += written([node])
    return list(dict.fromkeys(names))


def written(nodes: Sequence[ast.AST]) -> list[str]:
    """Names whose tensors are written in place: ``y += 1``, ``y[i] = 1``."""
    names = []
    for node in walk(nodes, COMPREHENSIONS):
        target: ast.AST | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name):
            names.append(target.id)
    return list(dict.fromkeys(names))


def read(nodes: Sequence[ast.AST]) -> list[str]:
    """Names that are read, also by functions inside."""
    loads = [x.id for node in nodes for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load)]
    return list(dict.fromkeys(loads))


def leaves(nodes: Sequence[ast.AST], kinds: tuple[type, ...]) -> bool:
    """Whether statements of some kinds are among those that a block runs: `return`, or `break` of this loop."""
    inner = LOOPS if ast.Return not in kinds else ()
    return any(isinstance(node, kinds) for node in walk(nodes, inner))


def always_leaves(block: Sequence[ast.stmt], kinds: tuple[type, ...]) -> bool:
    """Whether a block never reaches its end."""
    for node in block:
        if isinstance(node, (*kinds, ast.Raise)):
            return True
        if isinstance(node, ast.If) and always_leaves(node.body, kinds) and always_leaves(node.orelse, kinds):
            return True
    return False


def obstacle(nodes: Sequence[ast.AST], outer: frozenset[str]) -> tuple[int, str] | None:
    """The first line of some statements, and the reason, for which they cannot be part of a loop or a branch.

    Parameters
    ----------
    outer : names that the function has declared global or nonlocal.
    """
    for node in walk(nodes):
        reason = _reason(node, outer)
        if reason:
            return getattr(node, "lineno", 0), reason
    return None


def _reason(node: ast.AST, outer: frozenset[str]) -> str:
    if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
        return "it yields or awaits"
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return "it declares names of an outer scope"
    if isinstance(node, ast.Delete):
        return "it deletes a name"
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return f"it sets the attribute {node.attr!r}, which would happen once, while it is traced"
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in outer:
        return f"it sets {node.id!r} of an outer scope"
    if isinstance(node, ast.Raise):
        return "it raises an exception"
    if isinstance(node, LOOPS) and node.orelse:
        return "a loop in it has an else"
    if isinstance(node, (ast.With, ast.Try, ast.Match)):
        kinds = (ast.stmt, ast.ExceptHandler, ast.match_case)
        blocks = [child for child in ast.iter_child_nodes(node) if isinstance(child, kinds)]
        if any(isinstance(x, (ast.Return, ast.Break, ast.Continue)) for x in walk(blocks)):
            return "it leaves a with, try or match by return, break or continue"
    return ""
