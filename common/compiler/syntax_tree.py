"""Walks over the syntax trees of kernels: each node is walked once, and its parts are remembered."""

from __future__ import annotations

import ast


def parts(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, in the order of `ast.walk`, without the contexts of names; kept with the node."""
    known: list[ast.AST] | None = node.__dict__.get("_parts")
    if known is not None:
        return known
    found = [node]
    for one in found:  # grows meanwhile
        for field in one._fields:
            value = getattr(one, field, None)
            if isinstance(value, list):
                found += [part for part in value if isinstance(part, ast.AST)]
            elif field != "ctx" and isinstance(value, ast.AST):
                found.append(value)
    node.__dict__["_parts"] = found
    return found
