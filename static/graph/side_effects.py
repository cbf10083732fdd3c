"""Acts: nodes with side effects. They are never dropped, and run in program order.

``expect`` (value): the run goes on only if the bits of a 0-d float64 or int64 value are those of the attribute
``bits``: it is how a program that was traced along one path of Python's control flow knows that it is on that path.
``decision`` is its number among those of the trace.

``print`` (values...): `texts` has the other parts of the line, None where a value stands.

``assert`` (condition): the program ends with `message` unless the 0-d bool holds.

``callback`` (values...): the results of `call`, a `common.control.callback.Callback`. Its results are read like any
other's.

What can fail, or run forever, and follows an act in the program also follows it when the program runs. All acts come
before the first write to state.
"""

from __future__ import annotations

from typing import Any

from static.graph import Node
from static.graph.nodes import GraphOp

EXPECT: Any = GraphOp("expect", "act", ("decision", "bits"))
PRINT: Any = GraphOp("print", "act", ("texts", "sep", "end"))
ASSERT: Any = GraphOp("assert", "act", ("message",))
CALLBACK: Any = GraphOp("callback", "act", ("call",))
ACTS: dict[str, Any] = {"expect": EXPECT, "print": PRINT, "assert": ASSERT, "callback": CALLBACK}


class Mismatch(Exception):
    """A run is not on the path of its program: the number of the first decision that differs, and the bits there.

    Not an error of the user's: whoever runs the program takes another path.
    """

    def __init__(self, decision: int, bits: int) -> None:
        super().__init__(decision, bits)
        self.decision, self.bits = decision, bits


def gives(node: Node) -> bool:
    """Whether an act has results that others read."""
    return node.name == "callback"


def acts(node: Node) -> bool:
    """Whether a node is an act, or has one in its regions."""
    if node.op is None:
        return False
    return node.op.kind == "act" or any(acts(inner) for _, region in node.regions for inner in region.nodes)
