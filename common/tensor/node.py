"""Nodes of the tape: an engine's record of one op.

Both engines record the same `Node` objects, one with arrays, one with values of a graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from common.core.errors import MissingAttributeError
from common.core.op import Op
from common.core.source_lines import locate
from common.tensor import tape_garbage
from common.tensor.accumulate_grad import accumulate_grad, register
from common.tensor.node_names import node_name, shown_edges

numbers = itertools.count()
next_number: Callable[[], int] = numbers.__next__

#: An edge leads to a Node (its output 0), to ``(Node, output)``, to a leaf tensor, or is None.
Edge = Any


class Node:
    """One recorded application of an op.

    Attributes
    ----------
    op, attrs : what was applied.
    backward : the op's rules, composed; on the eager engine's short path their straight-line form.
    number : position in program order, over the whole process; a node between two others has a fraction.
    edges : per operand, where its gradient goes.
    saved : what the op's rules need, as bare payloads (arrays or values), so that no tensor is kept alive and no
        cycle arises; None once freed.
    fit : per operand shape and dtype, to which contributions are brought; None where they have them already.
    code, lasti : the user's frame, from which file and line follow.
    """

    __slots__ = ("op", "attrs", "backward", "number", "edges", "saved", "fit", "code", "lasti", "freed_by",
                 "_hooks", "_metadata", "__weakref__")  # fmt: skip

    def __init__(
        self, op: Op, attrs: Any, edges: tuple[Edge, ...], saved: Any, fit: Any, code: Any, lasti: int
    ) -> None:
        self.number = number = next_number()
        if number >= tape_garbage.due:
            tape_garbage.look(number)
        self.op, self.attrs, self.edges, self.saved = op, attrs, edges, saved
        self.backward = op.backward
        self.fit, self.code, self.lasti = fit, code, lasti
        self.freed_by: tuple[Any, int] | None = None

    def name(self) -> str:
        """PyTorch's name of the node, e.g. ``MulBackward0``."""
        return node_name(self)

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Pairs of node and output index per operand that has a derivative; ``(None, 0)`` where no gradient goes."""
        out: list[tuple[Any, int]] = []
        for edge in shown_edges(self):
            if edge is None:
                out.append((None, 0))
            elif isinstance(edge, Node):
                out.append((edge, 0))
            elif isinstance(edge, tuple):
                out.append(edge)
            else:
                out.append((accumulate_grad(edge), 0))
        return tuple(out)

    def _sequence_nr(self) -> int:
        """PyTorch's name of `number`."""
        return self.number

    @property
    def source(self) -> tuple[str, int, str]:
        """The user's file, line and function."""
        return locate(self.code, self.lasti)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's own purposes."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict[str, Any] = {}
            return self._metadata

    def register_hook(self, hook: Callable[..., Any]) -> Any:
        """Call ``hook(grad_inputs, grad_outputs)`` after the node's rules; it returns None or new `grad_inputs`."""
        return register(self, "after", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> Any:
        """Call ``hook(grad_outputs)`` before the node's rules; it returns None or new `grad_outputs`."""
        return register(self, "before", hook)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """A class that has PyTorch's name of the node; `type(node)` is what it is."""
        return shown_class(self.name())

    if TYPE_CHECKING:  # `common.autograd.node_calls` has it

        def __call__(self, *grad_outputs: Any) -> Any:
            """Run the node's rules."""

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


@cache
def shown_class(name: str) -> type:
    """A class of a node, by PyTorch's name of it."""
    return type(name, (Node,), {"__slots__": ()})


class FunctionNode(Node):
    """The node of a user-defined function, with the attributes of its context: in PyTorch the two are one object."""

    __slots__ = ()

    def __del__(self) -> None:
        self.attrs._left = self.saved  # whoever has kept the context still finds there what was saved

    def __getattr__(self, name: str) -> Any:
        if name in Node.__slots__ or name.startswith("__"):
            raise MissingAttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        try:
            return self.attrs.__dict__[name]
        except KeyError:
            raise MissingAttributeError(f"{self.name()!r} object has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SLOTS or hasattr(FunctionNode, name):
            _set(self, name, value)
        else:
            setattr(self.attrs, name, value)

    def __delattr__(self, name: str) -> None:
        if hasattr(FunctionNode, name):
            super().__delattr__(name)
        else:
            delattr(self.attrs, name)


NODE_CLASSES = frozenset((Node, FunctionNode))
_SLOTS, _set = frozenset(Node.__slots__), object.__setattr__
