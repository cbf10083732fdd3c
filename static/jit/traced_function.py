"""The run of a function on tracers, from which a program is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core import mode
from common.core.sizes import Dim
from common.core.tree import flatten, unflatten
from common.nn.module import Module
from common.tensor import node
from common.tensor.base import TensorBase
from static.jit.same_objects import SameObjects
from static.tracing.described import Described
from static.tracing.gradient_stages import StageGradients, first_stage, record_gradients
from static.tracing.refusals import refuse_hidden
from static.tracing.trace import Trace


class CallOutputs(NamedTuple):
    """The values that a traced call leaves.

    Attributes
    ----------
    values : of the tensors that the function returns, each once.
    gradients : of the call's backward pass; None if it has none.
    places : of the returned tensors, those that have gradients.
    differentiated : captured tensors that require grad.
    """

    values: list[Any]
    gradients: StageGradients | None = None
    places: Any = None
    differentiated: Any = ()


class TracedFunction:
    """The arguments and results of a function while it was traced.

    Attributes
    ----------
    trace : guards, captured inputs, assumptions.
    structure : the tree of containers that the arguments are, see `common.core.tree`.
    static_leaves : the leaves of the arguments that are no data.
    positions : which of the call's leaves are inputs of the graph.
    arrays : of these, (input, leaf) of the arrays.
    out_structure : the tree of containers that the function returns.
    results, places : the leaves of what is returned, None for tensors; of these the positions among all that the
        program computes: a tensor that is returned twice is one.
    same : results and gradients that are objects of the caller's.
    decisions : what Python decided on elements, in order: the path on which it was traced.
    """

    def __init__(self, owner: Described, leaves: Sequence[Any], structure: Any) -> None:
        self.structure = structure
        self.static_leaves = [None if is_data(x) else x for x in leaves]
        self.positions = [i for i, x in enumerate(leaves) if is_data(x)]
        self.arrays = [(p, i) for p, i in enumerate(self.positions) if isinstance(leaves[i], np.ndarray)]
        self.trace = Trace(owner.__name__, control_flow=owner.control_flow)

    def record(self, owner: Described, leaves: Sequence[Any], history: tuple[int, ...] | None) -> CallOutputs:
        """Run the function on tracers, and its backward pass if gradients are recorded.

        Parameters
        ----------
        history : positions of the leaves that require grad; None if gradients are not recorded.
        """
        trace, first = self.trace, node.next_number()
        try:
            with mode.activate_trace(trace):
                arguments = self._arguments(owner, leaves, history or ())
                args, kwargs = unflatten(self.structure, arguments)
                result, self.out_structure = flatten(owner.target(*args, **kwargs))
                returned = self._note_results(owner, result)
                values = [trace.payload(x) for x in returned]
                self.same = SameObjects(trace, returned, {i: arguments[i] for _, i in self.arrays}, history is not None)
                stage = (
                    None if history is None else first_stage(trace, returned, [arguments[i] for i in history], first)
                )
                if stage is None:
                    return CallOutputs(values)
                return CallOutputs(values, record_gradients(stage[0]), *stage[1:])
        finally:
            trace.check_state()
            self.decisions = [] if trace.decide is None else trace.decide.finish()

    def _arguments(self, owner: Described, leaves: Sequence[Any], history: Sequence[int]) -> list[Any]:
        arguments = list(leaves)
        for i in self.positions:
            arguments[i] = self.trace.argument(i, leaves[i], owner.home)
        for i in history:
            arguments[i]._requires_grad = True
        for x in leaves:
            if isinstance(x, Module):
                self.trace.note_module(x)
        return arguments

    def _note_results(self, owner: Described, result: Sequence[Any]) -> list[TensorBase]:
        """Note the leaves of a result; the tensors among them, each once.

        What is not traced, such as a string, is returned as it was when traced; a size by guard.
        """
        for x in result:
            refuse_hidden(owner.__name__, x)
        result = [int(x) if isinstance(x, Dim) else x for x in result]
        self.results = [None if isinstance(x, TensorBase) else x for x in result]
        returned = list({id(x): x for x in result if isinstance(x, TensorBase)}.values())
        at = {id(x): k for k, x in enumerate(returned)}
        self.places = [at[id(x)] for x in result if isinstance(x, TensorBase)]
        return returned


def is_data(x: Any) -> bool:
    """Whether a leaf of the arguments is data: an array, or a number; anything else is static."""
    return isinstance(x, np.ndarray) or type(x) in (int, float)
