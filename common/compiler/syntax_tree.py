"""Walks over the syntax trees of kernels: each node is walked once, and its parts are remembered."""

from __future__ import annotations

import ast


def parts(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, in the order of the text, without the contexts of names; kept with the node."""
    known: list[ast.AST] | None = node.__dict__.get("_parts")
    if known is None:
        known = [node]
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                for part in value:
                    if isinstance(part, ast.AST):
                        known += parts(part)
            elif field != "ctx" and isinstance(value, ast.AST):
                known += parts(value)
        node.__dict__["_parts"] = known
    return known
