"""Gradients of compiled calls inside another trace: a part of its program, where the call itself was made before.

What the node has saved are constants of that trace. The gradients are the graph that a pass outside would run; they are
results of one node again if they are to be differentiated, see `static.jit.compiled_node`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from common.control.body import as_tensors
from common.core import mode
from common.core.errors import GradientError
from common.core.source_lines import user_frame
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Edge, Node
from common.tensor.read_saved import with_edge
from static.graph import Graph
from static.graph.regions import room, rooms
from static.passes.remove_dead import remove_dead
from static.tracing.gradient_stages import StageGradients, differentiate, going_on
from static.tracing.recorder import Recorder
from static.tracing.tape_run import TapeRun


class SavedCall:
    """A node's memory of its call, besides arrays.

    Attributes
    ----------
    env : the sizes.
    edges : of what is differentiated.
    node : the node.
    """

    __slots__ = ("env", "edges", "node")

    def __init__(self, env: Mapping[Any, int], edges: tuple[Edge, ...]) -> None:
        self.env, self.edges = env, edges
        self.node: Callable[[], Node | None] = lambda: None


def require_sizes(name: str, gradients: StageGradients, call: SavedCall) -> None:
    """Check that gradients are those of a call.

    Raises
    ------
    GradientError : they rely on other sizes.
    """
    for guard in gradients.stage.trace.guards:
        if not guard.check(call.env):
            raise GradientError(
                f"a gradient of a gradient of {name} decides on sizes, and holds for others than those of "
                f"this call ({guard}): call the function again, which is then traced for these"
            )


class InlinedOp:
    """The op of a node that stands for gradients in another trace; it saves the inputs of their stage.

    Parameters
    ----------
    name, node_name : of the function and of the node.
    nout : how many results have a history.
    gradients : of these.
    """

    kind = "compiled"
    attrs = saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = frees = True

    def __init__(self, name: str, node_name: str, nout: int, gradients: StageGradients) -> None:
        self.name, self.node_name, self.nout, self.gradients = name, node_name, nout, gradients

    def reads(self, saved: Sequence[Any]) -> Iterator[tuple[int, np.ndarray]]:
        """Saved values that gradients read, with positions."""
        return ((i, x) for i, x in enumerate(saved) if isinstance(x, np.ndarray))

    def backward(self, saved: tuple[Any, ...], attrs: SavedCall, g: Any, needs: Sequence[Edge]) -> tuple[Any, ...]:
        """Contributions to what the gradients depend on."""
        return inlined(self, saved, attrs, (g,) if self.nout == 1 else g, needs)


def inlined(of: Any, inputs: Sequence[Any], call: SavedCall, cotangents: Sequence[Any], needs: Sequence[Edge]) -> Any:
    """The contributions of a node to what its edges lead to, in the trace that is open.

    Parameters
    ----------
    of : the node's op: its `gradients`, and names.
    inputs : what the node saves of the inputs of its stage.
    """
    trace: Any = mode.current_trace()
    recording = mode.is_grad_enabled()
    level = mode.tangents_around()
    if recording and level is not None:
        level.refuse(f"{of.node_name}, recorded by create_graph=True,", cotangents)
    states = tuple(None if c is None else recording and c.requires_grad for c in cotangents)
    with going_on:
        further = differentiate(
            of.gradients.stage, inputs, states, [None if edge is None else True for edge in needs], recording
        )
    require_sizes(of.name, of.gradients, call)
    count = len({i for i in further.places if i is not None})
    fed = [cotangents[x] if isinstance(x, int) else x.payload for x in further.feeds]
    late = set() if further.gradients is None else {v.key for v in further.gradients.cotangents}
    own = [v for v in further.graph.inputs if v.key not in late]
    graph = remove_dead(Graph(own, further.graph.nodes, further.graph.outputs[:count], []))
    run = TapeRun(trace, frozenset())
    run.env.update(call.env)
    if isinstance(trace, Recorder):
        run.env.update({atom: room(trace.dims, trace.next_id()) for atom in rooms(graph)})
    given = [_operand(trace, x, v.spec.weak) for x, v in zip([*inputs, *fed], own, strict=True)]
    with mode.no_grad():
        outputs = run.nodes(graph, given)
    if recording:
        with mode.activate_trace(None):  # what the program returns may depend on tensors, none of which it has read
            outside = [with_edge(np.empty(0), edge) for edge in call.edges]
        for x in outside:
            trace.payload(x)
    if further.gradients is not None:
        sources = (cotangents[x].edge if isinstance(x, int) else x.edge for x in further.edges)
        made = SavedCall(call.env, (*call.edges, *sources))
        op: Any = InlinedOp(of.name, of.node_name + "Backward", len(further.results), further.gradients)
        saved = (*inputs, *(trace.payload(x) for x in fed))
        node = Node(op, made, made.edges, saved, None, *user_frame(4))
        made.node = ref(node)
        for i, position in enumerate(further.results):
            x = outputs[position] = wrap(trace.payload(outputs[position]))
            x.grad_fn, x.output_nr, x._requires_grad = node, i, True
    found = outputs if as_tensors() else [trace.payload(x) for x in outputs]
    return tuple(None if i is None else found[i] for i in further.places)


def _operand(trace: Any, x: Any, weak: bool) -> Any:
    """A saved value, or a cotangent, in a trace; a number stays one."""
    if weak and isinstance(x, np.ndarray):
        return x.item()
    return x if isinstance(x, TensorBase) else trace.wrap(trace.payload(x))
