"""A graph while it is built: its interface, and the names of its collections."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from static.graph import Node


class GraphKeys:
    """Names of the collections that functions of this package fill."""

    GLOBAL_VARIABLES = "variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    UPDATE_OPS = "update_ops"
    SUMMARIES = "summaries"


class Building(Protocol):
    """A graph, as far as the functions that build it need it; see `static.session.session_graph.Graph`."""

    trace: Any
    version: int
    compiled: dict[Any, Any]
    _counts: dict[str, int]

    def refuse_if_final(self, name: str) -> None:
        """Refuse to add something to a graph that is final."""
        ...

    def register(self, node: Node, name: str) -> None:
        """Note a new operation under a name."""
        ...

    def operation(self, node: Node) -> Any:
        """The operation that a node is."""
        ...

    def name_scope(self, name: str | None) -> AbstractContextManager[str]:
        """Context manager: names inside begin with `name`."""
        ...

    def add_to_collection(self, name: str, value: Any) -> None:
        """Add to a collection."""
        ...

    def get_collection(self, name: str) -> list[Any]:
        """The values of a collection."""
        ...

    def building(self) -> AbstractContextManager[Any]:
        """Context manager: this graph records, unless something else is being traced."""
        ...

    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
        """Context manager: new operations are run after `control_inputs`."""
        ...

    def group(self, *inputs: Any, name: str | None = None) -> Any:
        """An operation that does nothing but run after all of `inputs`."""
        ...
