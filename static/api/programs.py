"""Functions of both engines that take programs, too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def bind_trace(matrix: Callable[..., Any]) -> Callable[..., Any]:
    """`trace` of a matrix, and of a function."""

    @functools.wraps(matrix)
    def trace(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not callable(x):
            return matrix(x, *args, **kwargs)
        from static.export.held_graph import trace

        return trace(x, *args, **kwargs)

    trace.__doc__ = f"""{matrix.__doc__ or ""}

    Of a function, with arguments to trace it for, its program as a networkx DAG: see `static.export.held_graph.trace`.
    """
    return trace
