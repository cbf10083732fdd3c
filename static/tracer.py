"""Traced tensors: they stand for a value that exists only when the program runs."""

from __future__ import annotations

from typing import Any

from common.errors import EscapedTracerError
from common.methods import install_methods
from common.op import REGISTRY
from common.operators import install
from common.tensor import TensorBase
from static.graph import Value


class Tracer(TensorBase):
    """A tensor inside a trace; its payload `data` is a `static.graph.Value`.

    Attributes
    ----------
    trace : the trace that made it.
    number : the Python number in the call that is being traced, for a number argument; else None.
    """

    __slots__ = ("trace", "number")
    __op_priority__ = 3

    def __init__(self, data: Value, trace: Any, number: Any = None) -> None:
        self.data, self.trace, self.number = data, trace, number
        self.requires_grad = False
        self.grad_fn = None
        self.output_nr = 0
        self._grad = self._sink = None

    def describe_escape(self) -> EscapedTracerError:
        """The error for a tracer that is used after its trace."""
        file, line, function = self.data.node.source
        return EscapedTracerError(
            f"a traced value ({self.data.spec} from {self.data.node.name} at {file}:{line} in {function}) is used "
            f"after its trace of {self.trace.name} has ended. It has no elements. Return it from the traced function "
            "instead of storing it in a global, an attribute or a list."
        )


install_methods(TensorBase)
install(Value, REGISTRY, comparisons=False)
