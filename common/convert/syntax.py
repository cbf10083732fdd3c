"""Making nodes of the syntax tree, at the user's lines."""

from __future__ import annotations

import ast
from typing import Any

RUNTIME = "tw__"


class Fill(ast.NodeTransformer):
    """Expressions in place of names."""

    def __init__(self, parts: dict[str, ast.expr]) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> Any:
        """The replacement of a name."""
        return self.parts.get(node.id, node)


def sets_names(node: ast.expr) -> bool:
    """Whether an expression sets names, which a lambda cannot, or waits."""
    return any(isinstance(x, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for x in ast.walk(node))


def runtime(name: str, at: ast.AST) -> ast.expr:
    """A name of `common.convert.runtime`."""
    return place(ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load()), at)


def place(node: Any, at: Any) -> Any:
    """A node, and those below it that have no line of the user's yet, at a line."""
    for part in ast.walk(node):
        if isinstance(part, (ast.stmt, ast.expr, ast.arg, ast.keyword, ast.excepthandler, ast.alias)):
            if not getattr(part, "tw_user", False):
                # on one line: for a method call the compiler takes the line on which its name ends
                part.lineno = part.end_lineno = at.lineno
                part.col_offset, part.end_col_offset = at.col_offset, at.col_offset + 1
    return node
