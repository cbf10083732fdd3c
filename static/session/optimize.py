"""Updates of an optimiser as operations of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError
from common.tensor.leaf import Leaf
from static.session.building import Building
from static.session.graph_tensor import Operation
from static.session.variables import Variable, assign, assign_add


def apply_in_graph(
    graph: Building, optimizer: Any, pairs: Sequence[tuple[Any, Any]], global_step: Any, name: str | None
) -> Operation:
    """An operation that updates parameters: what `step` does, when a run comes to it.

    Parameters
    ----------
    pairs : gradient, a tensor of a graph, and its parameter.
    global_step : a variable that is counted up, or None.
    """
    known = {id(p) for group in optimizer.param_groups for p in group.params}
    fresh = [p for _, p in pairs if id(p) not in known]
    if fresh:
        optimizer.add_param_group({"params": fresh})
    gradients = {id(p): g for g, p in pairs}
    done: list[Any] = []
    with graph.building(), mode.no_grad(), graph.name_scope(name or type(optimizer).__name__):
        for group in optimizer.param_groups:
            options = group.options()
            for p in group.params:
                if id(p) in gradients:
                    new, state = optimizer.update(options, p, gradients[id(p)], optimizer.state[p])
                    done += [_write(optimizer.state[p][key], value) for key, value in state.items()]
                    done.append(_write(p, new))
        if global_step is not None:
            with graph.control_dependencies(done):
                done.append(assign_add(global_step, 1))
        return graph.group(*done, name="update")


def _write(x: Any, value: Any) -> Any:
    """An operation that writes to a variable, or to a parameter or buffer."""
    if isinstance(x, Variable):
        return assign(x, value)
    if not isinstance(x, Leaf):
        raise ArgumentError(f"an optimiser in a graph updates variables and parameters, not {x!r}")
    graph = value.graph
    return graph.operation(graph.trace.write(x, graph.trace.payload(value)))
