"""One run of a function that is a region: inputs of its own, results, and the tape between them.

`pulled` differentiates a body into another one, whose inputs are cotangents and the inputs of the first. Both
engines use it, the eager one for every run of a body, a trace for the only one it has; so a gradient of any order
adds up the same numbers in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.autograd.backward_pass import backward_pass, collect
from common.autograd.region import captured_edges
from common.core import mode
from common.core.op import REGISTRY
from common.ops.math.arithmetic import zeros_like
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Edge, Node
from common.tensor.read_saved import saved_tensors


class Body:
    """A function's run.

    Attributes
    ----------
    inputs : leaves of its own, in the order carried, rows, constants.
    carried, stacked : results, by what becomes of them.
    summed : by what they are contributions to, results that are added up over all runs: to the constant of a
        position, or to what an edge leads to (`id_of`).
    start : nodes from this number on belong to the run.
    raw : in a trace, the nodes of the graph that compute the results.
    """

    __slots__ = ("inputs", "carried", "stacked", "summed", "start", "raw", "_captured", "_edges", "_reached")

    def __init__(self, inputs: Sequence[TensorBase], start: int) -> None:
        self.inputs, self.start = list(inputs), start
        self.carried: list[TensorBase] = []
        self.stacked: list[TensorBase] = []
        self.summed: dict[Hashable, TensorBase] = {}
        self.raw: Any = None
        self._captured: list[Edge] | None = None
        self._edges: dict[int, Edge] = {}
        self._reached: tuple[list[Edge], list[Node]] | None = None

    @property
    def captured(self) -> list[Edge]:
        """Edges to what lies outside and gets a gradient, each once."""
        if self._captured is None:
            self._edges = {id(x): x.edge for x in (*self.carried, *self.stacked, *self.summed.values())}
            outputs = [edge for edge in self._edges.values() if edge is not None]
            self._reached = outputs, collect(outputs, self.start) if outputs else []
            own = {id(x) for x in self.inputs}
            self._captured = captured_edges(self._reached[1], outputs, self.start, own) if outputs else []
        return self._captured

    def edge(self, x: TensorBase) -> Edge:
        """Where the gradient of a result goes; of a tensor from outside, as it was when the function returned it."""
        return self._edges.get(id(x), x.edge)

    def forget(self, unwanted: Callable[[Edge], bool]) -> None:
        """Take edges out of `captured`."""
        self._captured = [edge for edge in self.captured if not unwanted(edge)]

    def order(self, roots: list[Edge]) -> list[Node]:
        """The nodes of the run that some results reach, as a backward pass handles them."""
        outputs, order = self._reached or ([], [])
        known = [*map(id_of, roots)] == [*map(id_of, outputs)]
        return order if known else collect(roots, self.start)


def id_of(edge: Edge) -> Hashable:
    """A name for an edge while that is alive, unlike the positions of constants."""
    return ("edge", id(edge[0]), edge[1]) if type(edge) is tuple else ("edge", id(edge), 0)


def leaf(payload: Any, wanted: bool) -> TensorBase:
    """A new tensor over a payload; what a region is given it cannot write to."""
    if type(payload) is np.ndarray:
        payload = payload.view()
        payload.flags.writeable = False
    x = wrap(payload)
    x._requires_grad = wanted and payload.dtype.kind == "f"
    return x


def owned(x: TensorBase, body: Body) -> np.ndarray:
    """The array of a result that leaves its region, a copy if it may be somebody else's."""
    array: np.ndarray = x.payload
    made_here = x.grad_fn is not None and x.grad_fn.number >= body.start
    return array if made_here and array.base is None and array.flags.writeable else np.array(array, order="C")


def tensor_of(x: Any) -> TensorBase:
    """A payload as a tensor; a tensor as it is."""
    return x if isinstance(x, TensorBase) else wrap(x)


def as_tensors() -> bool:
    """Whether a gradient computes with tensors: it is recorded, or carries tangents on."""
    return mode.is_grad_enabled() or mode.tangents_around() is not None


def payload_of(x: Any) -> Any:
    """The payload that an op meets in place of a tensor when nothing is recorded."""
    if not isinstance(x, TensorBase):
        return x
    trace = mode.current_trace()
    return x.payload if trace is None else trace.payload(x)


def _zeros(x: TensorBase, take: Any) -> Any:
    """Zeros like a tensor; as an array at once where nothing else is asked for."""
    if take is payload_of and type(x.payload) is np.ndarray:
        return np.zeros(x.payload.shape, x.payload.dtype)
    with mode.no_grad():
        return take(zeros_like(x))


class Cotangents(NamedTuple):
    """Leaves that stand for cotangents of a body's results; None where there is none.

    Attributes
    ----------
    hidden : of the carried inputs, as far as a derivative of higher order uses them.
    """

    carried: list[TensorBase | None]
    stacked: list[TensorBase | None]
    summed: dict[Hashable, TensorBase]
    hidden: list[TensorBase | None]

    @property
    def rows(self) -> list[TensorBase]:
        """Operands that are rows of a stack: stacked and hidden."""
        return [x for x in (*self.stacked, *self.hidden) if x is not None]


def pulled(body: Body, g: Cotangents, counts: tuple[int, int]) -> Body:
    """The run that takes cotangents of the results of `body` to those of its inputs, and of what it captured.

    Parameters
    ----------
    counts : how many of the body's inputs are carried, how many are rows; the rest are constants.

    Order: seeds of carried, stacked and summed results, then the order of every backward pass; what the hidden use
    of a carried input gives is added last.
    """
    level = mode.tangents_around()
    unpack = (saved_tensors if mode.is_grad_enabled() else None) if level is None else level.saved_tensors
    trace = mode.current_trace()
    origin = None if trace is None else trace.origin
    take = payload_of if unpack is None else tensor_of
    pairs = [*zip(body.carried, g.carried), *zip(body.stacked, g.stacked)]
    pairs += [(body.summed[name], c) for name, c in g.summed.items() if name in body.summed]
    seeds = [(body.edge(y), take(c)) for y, c in pairs if c is not None and body.edge(y) is not None]
    order = body.order([edge for edge, _ in seeds])
    totals = backward_pass(seeds, unpack, retain=True, order=order)
    if trace is not None:
        trace.origin = origin
    carried, rows = counts
    again = body.inputs[: carried + rows], body.inputs[carried + rows :]
    first = [x for x in g.carried if x is not None]
    out = Body([*first, *g.rows, *again[0], *g.summed.values(), *again[1]], body.start)
    out.raw = body.raw
    for position, x in enumerate(body.inputs):
        if not x.requires_grad:
            continue
        total = totals.get(x)
        if position >= carried + rows:
            if total is not None:
                out.summed[position - carried - rows] = tensor_of(total)
            continue
        if total is None:
            total = _zeros(x, take)
        if position >= carried:
            out.stacked.append(tensor_of(total))
            continue
        more = g.hidden[position]
        out.carried.append(tensor_of(total if more is None else REGISTRY["add"](total, take(more))))
    for edge in body.captured:
        total = totals.get(edge)
        if total is not None:
            out.summed[id_of(edge)] = tensor_of(total)
    return out
