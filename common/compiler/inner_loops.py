"""Where all elements that a loop reads under conditions are inside: there it needs no conditions.

The gradient of slices, as of a stencil, reads ``x[a + i] if i >= n and i < m else 0.0`` per slice. The bounds of slices
that overlap lie close together, so nearly all iterations are between the largest lower and the smallest upper bound.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from common.compiler.syntax_tree import names, parts

LEAST = 3
"""Conditions from which on a loop that is written twice costs less than their masks."""

FEW = 128
"""Iterations below which they are not worth three loops."""


class InnerLoop(NamedTuple):
    """A loop without conditions, for the iterations from the largest of some names on to the smallest of others."""

    loop: ast.For
    lows: tuple[str, ...]
    highs: tuple[str, ...]


def inner_loop(node: ast.For, name: str) -> InnerLoop | None:
    """The inner part of ``for name in range(...)``; None if it has few conditions, or others than bounds."""
    assigned = {x.id for x in names(node) if isinstance(x.ctx, ast.Store)}
    lows, highs, body = list[str](), list[str](), list[ast.stmt]()
    for statement in node.body:
        match statement:
            case ast.Assign(value=ast.IfExp(test=test, body=ast.Subscript() as element, orelse=other)) if not any(
                isinstance(part, ast.Subscript) for part in parts(other)
            ):
                tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
                for one in tests:
                    match one:
                        case ast.Compare(left=ast.Name(id=left), ops=[order], comparators=[ast.Name(id=bound)]) if (
                            left == name and bound not in assigned and isinstance(order, (ast.GtE, ast.Lt))
                        ):
                            (lows if isinstance(order, ast.GtE) else highs).append(bound)
                        case _:
                            return None
                statement = ast.copy_location(ast.Assign(statement.targets, element), statement)
        body.append(statement)
    if len(lows) + len(highs) < LEAST:
        return None
    inner = ast.copy_location(ast.For(node.target, node.iter, body, []), node)
    return InnerLoop(inner, tuple(dict.fromkeys(lows)), tuple(dict.fromkeys(highs)))
