"""Programs that users hold as a networkx DAG: `static.trace` gives one, `static.from_networkx` compiles one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, GraphError, TwingradError
from common.core.sizes import hint
from common.core.spec import Spec
from common.tensor.base import TensorBase
from static.export.program_function import ProgramFunction
from static.export.recorded import RecordedCall, of_graph, record
from static.export.rerun import run_program
from static.graph import Graph, Node
from static.graph.dag import graph_of
from static.graph.regions import LoopParts
from static.running.python_calls import journal
from static.tracing.tape_run import TapeRun
from static.tracing.trace import Trace

if TYPE_CHECKING:
    import networkx as nx

PROGRAM = "program"
"""Data of a DAG that is no part of its nodes and edges: arguments, and tensors read by reference."""


def trace(f: Callable[..., Any], *args: Any, **kwargs: Any) -> nx.DiGraph:
    """A function's program as a networkx DAG, traced for such arguments, not run.

    Nodes are ops in program order, each with its attributes, results and the user's line; see `static.graph.dag` for
    the data, which may be edited, and docs/networkx.md for examples. What is one op on the tape is one node.

    Parameters
    ----------
    f : a function of tensors, compiled or not, or a module.
    args, kwargs : its arguments; sizes other than 1 stay symbolic.

    Raises
    ------
    TraceError : Python asks for elements of a traced value.

    Examples
    --------
    >>> import numpy as np, static
    >>> dag = static.trace(lambda x: static.softmax(x.exp(), -1), np.ones((2, 3), np.float32))
    >>> [(i, op) for i, op in dag.nodes(data="op")], list(dag.edges)
    ([(0, 'input'), (1, 'exp'), (2, 'softmax')], [(0, 1), (1, 2)])
    >>> dag.nodes[1]["op"] = "tanh"
    >>> static.from_networkx(dag)(np.zeros((1, 2), np.float32))
    tensor([[0.5000, 0.5000]])
    """
    recorded = record(f, args, kwargs)
    made = recorded.graph.dag
    for key in made:
        made.nodes[key]["history"] = key not in recorded.quiet
    made.graph[PROGRAM] = recorded
    return made


def from_networkx(dag: nx.DiGraph, **options: Any) -> Any:
    """Check a DAG, and compile it: a function like that of `static.function`, with gradients, for all sizes that fit.

    Parameters
    ----------
    dag : made by `trace`, perhaps edited, or by hand; see `static.graph.dag` for the data that it needs.
    options : of `static.function`.

    Raises
    ------
    ArgumentError : no `networkx.DiGraph`, or nodes that are no ints.
    GraphError : a cycle, an unknown op, wrong operands, attributes or specs; the message names the node and its line.

    Examples
    --------
    >>> import networkx as nx, numpy as np, static
    >>> dag = nx.DiGraph()
    >>> dag.add_node(0, op="input", specs=[static.ShapeDtypeStruct((3,), np.float32)])
    >>> dag.add_node(1, op="exp")
    >>> dag.add_edge(0, 1)
    >>> f = static.from_networkx(dag)
    >>> static.grad(lambda x: f(x).sum())(np.zeros(2, np.float32))
    tensor([1., 1.])
    """
    graph = graph_of(dag, derive=False)
    old = dag.graph.get(PROGRAM)
    name = getattr(old, "name", "program")
    if old is None:
        program = of_graph(graph, name)
    elif not isinstance(old, RecordedCall):
        raise ArgumentError(f"from_networkx(): the DAG's {PROGRAM!r} is {type(old).__name__}; only trace() makes it")
    else:
        program = _edited(old, graph, dag)
    check(program)
    return ProgramFunction([program], {}, **options)


def _edited(old: RecordedCall, graph: Graph, dag: nx.DiGraph) -> RecordedCall:
    """A traced program with what has become of its graph."""
    if [v.key for v in graph.inputs] != [v.key for v in old.graph.inputs]:
        raise GraphError("from_networkx(): the inputs are not those of the traced program; make a DAG of your own")
    if len(graph.outputs) != len(old.graph.outputs):
        raise GraphError(
            f"from_networkx(): the DAG has {len(graph.outputs)} outputs, the traced program {len(old.graph.outputs)}"
        )
    quiet = frozenset(key for key, history in dag.nodes(data="history", default=True) if not history)
    return replace(old, graph=graph, quiet=quiet)


def check(program: RecordedCall) -> None:
    """Hold the specs of a program against those that its ops give when it is traced.

    Raises
    ------
    GraphError : an op cannot be applied to its operands, a spec is another one, or a loop has no such sums.
    """
    for node in program.graph.all_nodes():
        if node.name == "loop":
            LoopParts(node).without_sums()
    made = Trace(program.name)
    with mode.activate_trace(made), mode.GradSwitch(True):
        leaves: list[Any] = list(program.leaves)
        for i, value in zip(program.positions, program.graph.inputs, strict=False):
            sizes = tuple(hint(n) for n in value.shape)
            array: Any = np.broadcast_to(np.zeros((), value.dtype), sizes)
            if value.spec.weak:
                array = program.fixed.get(i, 0 if value.dtype.kind == "i" else 0.5)
            leaves[i] = made.argument(i, array, value.node.source)
        try:
            run_program(program, leaves, CheckingRun(made, program.quiet))
        finally:
            made.check_state()
            journal.end()


class CheckingRun(TapeRun):
    """A run that holds what each node gives against what the DAG says."""

    def node(self, node: Node) -> Sequence[Any]:
        """Run a node, and look at its results."""
        file, line, _ = node.source
        place = f"from_networkx(): %{node.id} ({node.name}{f' at {file}:{line}' if line else ''})"
        try:
            results = super().node(node)
        except GraphError:
            raise
        except (TwingradError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise GraphError(f"{place} cannot be applied to its operands: {error}") from error
        for i, (value, x) in enumerate(zip(node.outputs, results, strict=True)):
            if isinstance(x, TensorBase) and _form(x.payload.spec) != _form(value.spec):
                raise GraphError(f"{place}: result {i} has spec {value.spec}; its operands give {x.payload.spec}")
        return results


def _form(spec: Spec) -> Any:
    return [hint(n) for n in spec.shape], spec.dtype
