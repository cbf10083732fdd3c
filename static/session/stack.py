"""Which graph and which session are the default in this context."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from common import mode
from common.errors import GraphError

if TYPE_CHECKING:
    from static.session.graph import Graph

_graphs: ContextVar[tuple[Any, ...]] = ContextVar("twingrad_default_graphs", default=())
_sessions: ContextVar[tuple[Any, ...]] = ContextVar("twingrad_default_sessions", default=())
_outermost: list[Any] = []


@contextmanager
def default_graph(graph: Graph) -> Iterator[Graph]:
    """Until the end of the block `graph` records what is computed, and is the default graph."""
    token = _graphs.set((*_graphs.get(), graph))
    try:
        with mode.activate_trace(graph.trace):
            yield graph
    finally:
        _graphs.reset(token)


@contextmanager
def default_session(session: Any) -> Iterator[Any]:
    """Until the end of the block `session` is the default session."""
    token = _sessions.set((*_sessions.get(), session))
    try:
        yield session
    finally:
        _sessions.reset(token)


def get_default_graph() -> Graph:
    """The graph of the innermost `as_default` block; outside of any, one graph of the process."""
    found = _graphs.get()
    if found:
        graph: Graph = found[-1]
        return graph
    if not _outermost:
        reset_default_graph()
    outermost: Graph = _outermost[0]
    return outermost


def reset_default_graph() -> None:
    """Begin with a new default graph; tensors of the old one stay with it.

    Raises
    ------
    GraphError : inside a block of `as_default` or of a session.
    """
    from static.session.graph import Graph

    if _graphs.get():
        raise GraphError("reset_default_graph() inside a block of a graph or session: leave the block first")
    _outermost[:] = [Graph()]


def get_default_session() -> Any:
    """The session of the innermost block; None outside of any."""
    found = _sessions.get()
    return found[-1] if found else None
