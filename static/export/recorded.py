"""A call of a function as a program on its own: its graph, and all that the graph needs of Python objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, TraceError, TwingradError
from common.core.polynomials import Guard
from common.core.sizes import Dim, DimScope
from common.core.tree import flatten, unflatten
from common.nn.module import Module
from common.tensor.base import TensorBase
from static.export.whole_trace import WholeTrace
from static.graph import Effect, Graph, Node, Value
from static.graph.verify import verify
from static.jit.function import CompiledFunction
from static.jit.traced_function import is_data
from static.passes.remove_dead import remove_dead
from static.running.python_calls import journal
from static.tracing.captured import Captured
from static.tracing.refusals import refuse_hidden
from static.tracing.signature import native_array


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A program.

    Attributes
    ----------
    name : of the function.
    graph : what the program's tape sees; its outputs are results, then gradients that it leaves in `.grad`.
    quiet : ids of nodes through which no gradient flows, though one could.
    structure, leaves : of the arguments; a leaf that is data is None.
    positions : the leaves that are data; the first inputs of the graph.
    fixed : of these, numbers that the program used as Python numbers, by position among the leaves.
    captured : where the other inputs come from.
    guards : what sizes must fulfil.
    out_structure, results, places : of what is returned: its nesting, its leaves (None for tensors), and the outputs
        that the tensors are.
    targets, cleared : tensors whose `.grad` the last outputs become, and those whose `.grad` becomes None.
    without_grad : per tensor whose `.grad` the program has looked at, whether it was None.
    custom : names of what has gradients that are Python functions of the user's, and so no part of the graph.
    """

    name: str
    graph: Graph
    quiet: frozenset[int]
    structure: Any
    leaves: tuple[Any, ...]
    positions: tuple[int, ...]
    fixed: Mapping[int, Any]
    captured: tuple[Captured, ...]
    guards: tuple[Guard, ...]
    out_structure: Any
    results: tuple[Any, ...]
    places: tuple[int, ...]
    targets: tuple[TensorBase, ...]
    cleared: tuple[TensorBase, ...]
    without_grad: tuple[tuple[TensorBase, bool], ...]
    custom: tuple[str, ...] = ()


def record(
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    whole: Callable[[str], bool] = lambda name: True,
) -> RecordedCall:
    """Trace a call without running it.

    Parameters
    ----------
    f : a `function`, what `compile` or a transform returns, a module, or a Python function that could be one.
    args, kwargs : an example of its arguments: their sizes may differ from call to call, and numbers are data.

    whole : which composites, by name, stay one node; the others are what they are made of.

    Raises
    ------
    TraceError : it cannot be traced, or Python decides in it on traced values.
    """
    if not callable(f):
        raise ArgumentError(f"a function or a module is traced, not {type(f).__name__}")
    name = getattr(f, "__name__", type(f).__name__)
    target = f.target if isinstance(f, CompiledFunction) else f
    if isinstance(f, CompiledFunction) and f.control_flow == "guard":
        raise TraceError(
            f"{name} has control_flow='guard', so its program depends on elements: rewrite it with "
            "control_flow='convert', cond or while_loop, which are part of a program"
        )
    leaves, structure = flatten((tuple(args), dict(kwargs)))
    for i, x in enumerate(leaves):
        if isinstance(x, (TensorBase, np.ndarray, np.generic)):
            leaves[i] = native_array(np.asarray(x.payload if isinstance(x, TensorBase) else x), i)
    try:
        return _recorded(name, target, leaves, structure, True, whole)
    except TwingradError as error:  # perhaps it writes to an argument, which it cannot if that requires grad
        first = error
    try:
        return _recorded(name, target, leaves, structure, False, whole)
    except TwingradError:
        raise first from None


def _recorded(
    name: str, target: Callable[..., Any], leaves: list[Any], structure: Any, history: bool, whole: Any
) -> RecordedCall:
    trace = WholeTrace(name, whole)
    code = getattr(target, "__code__", None)
    home = (code.co_filename, code.co_firstlineno, code.co_name) if code else ("<unknown>", 0, name)
    positions = [i for i, x in enumerate(leaves) if is_data(x)]
    try:
        with mode.activate_trace(trace), mode.GradSwitch(True):
            arguments = list(leaves)
            for i in positions:
                arguments[i] = trace.argument(i, leaves[i], home)
                if history and isinstance(leaves[i], np.ndarray) and leaves[i].dtype.kind == "f":
                    arguments[i]._requires_grad = True
            for x in leaves:
                if isinstance(x, Module):
                    trace.note_module(x)
            args, kwargs = unflatten(structure, arguments)
            result, out_structure = flatten(target(*args, **kwargs))
            for x in result:
                refuse_hidden(name, x)
            result = [int(x) if isinstance(x, Dim) else x for x in result]
            traced = list({id(x): x for x in result if isinstance(x, TensorBase)}.values())
            at = {id(x): k for k, x in enumerate(traced)}
            outputs = [trace.payload(x) for x in traced]
    finally:
        trace.check_state()
        journal.end()
    graph, targets, cleared = trace.finish(outputs)
    verify(graph, "tracing")
    graph = remove_dead(graph)
    ids: dict[int, int] = {}
    for node in graph.all_nodes():
        if node.id >= 0:
            ids.setdefault(node.id, len(ids))
    graph = _renumbered(graph, ids)
    quiet = frozenset(ids[i] for i in trace.without_history() if i in ids)
    return RecordedCall(
        name, graph, quiet, structure,
        tuple(None if i in positions else x for i, x in enumerate(leaves)), tuple(positions), dict(trace.fixed),
        tuple(trace.captured), tuple(trace.guards), out_structure,
        tuple(None if isinstance(x, TensorBase) else x for x in result),
        tuple(at[id(x)] for x in result if isinstance(x, TensorBase)), tuple(targets), tuple(cleared),
        tuple(trace.assumed.values()), trace.custom(),
    )  # fmt: skip


def _renumbered(graph: Graph, ids: Mapping[int, int]) -> Graph:
    """A graph with other ids, regions included; those of regions' inputs stay."""
    new: dict[tuple[int, int], Value] = {}
    nodes = []
    for old in graph.nodes:
        attrs: dict[str, Any] = {
            name: _renumbered(x, ids) if isinstance(x, Graph) else x for name, x in old.attrs.items()
        }
        if "of" in attrs and old.regions:
            attrs["of"] = ids.get(attrs["of"], attrs["of"])
        operands = tuple(new[x.key] if type(x) is Value else x for x in old.operands)
        specs = (value.spec for value in old.outputs)
        node = Node(ids.get(old.id, old.id), old.op, operands, attrs, specs, old.source, old.scope)
        nodes.append(node)
        new.update((a.key, b) for a, b in zip(old.outputs, node.outputs, strict=True))
    effects = [Effect(new[e.state.key], new[e.value.key]) for e in graph.effects]
    return Graph([new[v.key] for v in graph.inputs], nodes, [new[v.key] for v in graph.outputs], effects)


def of_graph(graph: Graph, name: str) -> RecordedCall:
    """A program that somebody has built node by node: arrays in, in the order of the inputs, and a tuple out.

    The sizes of its inputs are an example: those other than 1 are free.
    """
    scope = DimScope(int, int)
    for p, value in enumerate(graph.inputs):
        sizes = (n if isinstance(n, Dim) or n == 1 else scope.input(p, axis, n) for axis, n in enumerate(value.shape))
        value.spec = value.spec._replace(shape=tuple(sizes))
    count = len(graph.outputs)
    structure = (tuple, ((tuple, ("*",) * len(graph.inputs)), (dict, (), ())))
    return RecordedCall(
        name, graph, frozenset(), structure, (None,) * len(graph.inputs), tuple(range(len(graph.inputs))), {}, (), (),
        "*" if count == 1 else (tuple, ("*",) * count), (None,) * count, tuple(range(count)), (), (), (),
    )  # fmt: skip
