"""Walks over the syntax trees of kernels: a tree is walked once, and each node remembers where its parts lie."""

from __future__ import annotations

import ast
from typing import Any

_SKIPPED = frozenset(("ctx", "op", "ops"))
_Span = tuple[list[Any], int, int]


def parts(node: ast.AST) -> list[ast.AST]:
    """A node and all below it, in the order of the text, without operators and the contexts of names."""
    nodes, start, end = _spans(node)[0]
    return nodes[start:end]


def names(node: ast.AST) -> list[ast.Name]:
    """The names among `parts`."""
    found, start, end = _spans(node)[1]
    return found[start:end]


def _spans(node: ast.AST) -> tuple[_Span, _Span]:
    known: tuple[_Span, _Span] | None = node.__dict__.get("_spans")
    if known is None:
        _walk(node, [], [])
        known = node.__dict__["_spans"]
    return known


def _walk(node: ast.AST, nodes: list[Any], found: list[Any]) -> None:
    first, start = len(nodes), len(found)
    nodes.append(node)
    kind = type(node)
    if kind is ast.Name:
        found.append(node)
    elif kind is not ast.Constant:
        for field in kind._fields:
            if field in _SKIPPED:
                continue
            value = getattr(node, field, None)
            if isinstance(value, list):
                for part in value:
                    if isinstance(part, ast.AST):
                        _walk(part, nodes, found)
            elif isinstance(value, ast.AST):
                _walk(value, nodes, found)
    node.__dict__["_spans"] = (nodes, first, len(nodes)), (found, start, len(found))
