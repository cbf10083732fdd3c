"""The default graph and the default session of this context."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from common.core import mode
from common.core.errors import GraphError, SessionError
from common.core.switching import Change, Switching

_graphs: ContextVar[tuple[Any, ...]] = ContextVar("twingrad_default_graphs", default=())
_sessions: ContextVar[tuple[Any, ...]] = ContextVar("twingrad_default_sessions", default=())
_outermost: list[Any] = []
_kinds: list[type] = []

G = TypeVar("G", bound=Any)
K = TypeVar("K", bound=type)


def by_default(kind: K) -> K:
    """Decorator: the class is that of the default graph of the process."""
    _kinds.append(kind)
    return kind


class default_graph(Switching):
    """Until the end of the block `graph` records what is computed, and is the default graph."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def _change(self) -> Change:
        before, inner = _graphs.get(), mode.activate_trace(self._graph.trace)._change()
        return Change(
            (partial(_graphs.set, (*before, self._graph)), *inner.on),
            (*inner.off, partial(_graphs.set, before)),
            self._graph,
        )


class default_session(Switching):
    """Until the end of the block `session` is the default session."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def _change(self) -> Change:
        before = _sessions.get()
        return Change(
            (partial(_sessions.set, (*before, self._session)),), (partial(_sessions.set, before),), self._session
        )


def get_default_graph() -> Any:
    """The graph of the innermost `as_default` block; outside of any, one graph of the process."""
    found = _graphs.get()
    if found:
        return found[-1]
    if not _outermost:
        reset_default_graph()
    return _outermost[0]


def reset_default_graph() -> None:
    """Begin with a new default graph; tensors of the old one stay with it.

    Raises
    ------
    GraphError : inside a block of `as_default` or of a session.
    """
    if _graphs.get():
        raise GraphError("reset_default_graph() inside a block of a graph or session: leave the block first")
    _outermost[:] = [_kinds[-1]()]


def get_default_session() -> Any:
    """The session of the innermost block; None outside of any."""
    found = _sessions.get()
    return found[-1] if found else None


def the_session(session: Any, graph: Any) -> Any:
    """The given session, or the default one, which must be of this graph.

    Raises
    ------
    SessionError : there is none, or it has another graph.
    """
    found = get_default_session() if session is None else session
    if found is None:
        raise SessionError("there is no default session: use `with session.as_default():`, or pass session=")
    if found.graph is not graph:
        raise SessionError("the default session runs another graph: pass session=")
    return found
