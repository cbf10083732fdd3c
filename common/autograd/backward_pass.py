"""The one order in which gradients flow back along the tape.

Both engines record the same nodes (`common.tensor.node`) and differentiate with `backward_pass`. That is why their
gradients agree to the bit. The order (docs/numerics.md, point 5):

- nodes take numbers from one counter in program order and are handled in strictly descending number;
- a slot (output of a node, or a leaf) starts absent; a contribution `c` makes it ``acc + c``;
- root seeds come first, then node by node, operands ascending within a node;
- a contribution is un-broadcast to its slot's shape, then cast to its dtype, before it is added;
- a leaf's gradient is totalled first and then added to what `.grad` holds: ``old + total``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from common.autograd.hooks import HookedPass, watched_pass
from common.core import mode
from common.core.dispatch import Attrs
from common.core.errors import GraphFreedError
from common.core.mode import current_trace
from common.core.op import COPY, REGISTRY
from common.core.source_lines import locate
from common.core.unbroadcast import fit
from common.ops._define import for_arrays
from common.tensor import external_writes, hook_handles, tape_garbage, write_log
from common.tensor.node import Edge, FunctionNode, Node, next_number
from common.tensor.read_saved import opened


def collect(roots: Iterable[Edge], first: int = -1, outside: dict[int, Any] | None = None) -> list[Node]:
    """All nodes from number `first` on that the roots reach, in descending number; iterative: depth does not matter.

    Parameters
    ----------
    outside : takes up by id the leaves and earlier nodes that are met.
    """
    seen: set[Node] = set()
    stack: list[Node] = []
    if outside is None:  # the commonest case, by itself because it is a sixth of a small backward pass
        add, push, pop = seen.add, stack.append, stack.pop
        for edge in roots:
            if type(edge) is tuple:
                edge = edge[0]
            if (type(edge) is Node or type(edge) is FunctionNode) and edge.number >= first:
                add(edge)
        stack += seen
        while stack:
            for edge in pop().edges:
                if type(edge) is tuple:
                    edge = edge[0]
                if (type(edge) is Node or type(edge) is FunctionNode) and edge not in seen and edge.number >= first:
                    add(edge)
                    push(edge)
        return sorted(seen, key=_number, reverse=True)
    edges: Iterable[Edge] = roots
    while True:
        for edge in edges:
            if type(edge) is tuple:
                edge = edge[0]
            if (type(edge) is Node or type(edge) is FunctionNode) and edge.number >= first:
                if edge not in seen:
                    seen.add(edge)
                    stack.append(edge)
            elif edge is not None:
                outside[id(edge)] = edge
        if not stack:
            break
        edges = stack.pop().edges
    return sorted(seen, key=_number, reverse=True)


_number = attrgetter("number")


def backward_pass(
    seeds: Sequence[tuple[Edge, Any]],
    unpack: Callable[[Node], Any] | None,
    *,
    retain: bool,
    wanted: set[Any] | None = None,
    consumer: tuple[Any, int] = (None, 0),
    order: list[Node] | None = None,
    first: int = -1,
    deposit: Callable[[Any, Any], bool] | None = None,
) -> dict[Edge, Any]:
    """Propagate cotangents; return the total of each leaf, and of each slot in `wanted`.

    Parameters
    ----------
    seeds : pairs of root edge and cotangent, in root order.
    unpack : turns a node's saved payloads into tensors, so that the rules are recorded; None leaves them bare.
    retain : keep the saved values for another pass.
    wanted : edges whose total is asked for; then only nodes on a path to them are handled.
    consumer : the user's frame, kept to explain a second backward.
    order : the nodes that the roots reach, where they are known.
    first : number of the earliest node to handle; totals of earlier ones are returned.
    deposit : ``deposit(leaf, total)`` adds to `.grad` and says whether the leaf is one to add to; called here for
        leaves whose hooks have to run in between.

    Raises
    ------
    GraphFreedError : a node's saved values are gone.
    """
    if order is None:
        order = collect((edge for edge, _ in seeds), first)
    if order and write_log.last_write > order[-1].number:
        write_log.check(order)
    if order and external_writes.may_matter(order):
        external_writes.check(order)
    trace = current_trace()
    if unpack is not None and trace is None and for_arrays and any(node.op in for_arrays for node in order):
        order = _taken_apart(order, unpack)
    totals: dict[Edge, Any] = {}
    for edge, seed in seeds:
        old = totals.get(edge)
        totals[edge] = seed if old is None else REGISTRY["add"](old, seed)
    useful = None if wanted is None else leading_to(order, wanted)
    roots, run = [edge for edge, _ in seeds], None
    if hook_handles.hooks_seen or mode.tracing:
        run = watched_pass(order, useful, roots, wanted, unpack is None, deposit, first >= 0)
    if run is not None:
        with run:
            _run_tensors(order, totals, unpack, retain, consumer, useful, wanted, run)
    elif unpack is None and trace is None:
        _run_arrays(order, totals, retain, consumer, useful)
    else:
        _run_tensors(order, totals, unpack, retain, consumer, useful, wanted, None)
    if trace is not None:
        trace.origin = None
    if tape_garbage.waiting:
        tape_garbage.postponement.passed(next_number())
    return totals


def _taken_apart(order: Sequence[Node], unpack: Callable[[Node], Any]) -> list[Node]:
    """The order in which nodes whose rules are for arrays do no more than hand on to the tape of their ops.

    So a second pass totals what flows back from results and from first gradients at the places where that tape has it.
    """
    found = list(order)
    for node in order:
        if node.op not in for_arrays or node.saved is None:
            continue
        start = next_number()
        with mode.enable_grad():
            given = [REGISTRY["reshape"](x, new_shape=tuple(x.shape)) if x.requires_grad else x for x in unpack(node)]
            made = node.op.forward(*given, **node.attrs)  # type: ignore[misc]
        inner = collect([made.edge], start)
        found += inner
        for i, each in enumerate([*reversed(inner), node]):  # where it has been in the order of the tape
            each.number = node.number + i / (len(inner) + 1)  # type: ignore[assignment]
        op = REGISTRY[COPY]
        node.attrs, node.edges, node.fit = Attrs(node_name=node.name()), (made.edge,), None
        node.op, node.backward, node.saved = op, op.backward, op.save((made.payload,), made.payload)
    return sorted(found, key=_number, reverse=True)


def _run_tensors(
    order: list[Node],
    totals: dict[Edge, Any],
    unpack: Callable[[Node], Any] | None,
    retain: bool,
    consumer: tuple[Any, int],
    useful: dict[Any, tuple[Edge, ...]] | None,
    wanted: set[Any] | None,
    run: HookedPass | None,
) -> None:
    """The loop of `backward_pass` where rules are recorded, or hooks run."""
    trace = current_trace()
    pulled = None if trace is None or run is not None else trace.pulled
    if run is not None:
        run.retire(None, totals)
    for node in order:
        if run is not None:
            run.arrive(node, totals)
        if useful is not None and node not in useful:
            if run is not None:
                run.pass_by(node, _take(totals, node, keep=True))
            continue
        g = _take(totals, node, keep=wanted is not None)
        if g is None:
            if run is not None:
                run.retire(node, totals)
            continue
        saved = node.saved
        if saved is None:
            raise freed(node)
        needs = node.edges if useful is None else useful[node]
        if trace is not None:
            trace.origin = node
        if run is not None:
            g = run.before(node, g)
        fits = node.fit
        if unpack is not None:
            contributions = node.op.backward(unpack(node), node.attrs, g, needs)
        elif pulled is not None and (made := pulled(node, g, needs)) is not None:
            contributions, fits = made, None
        elif trace is not None:
            contributions = node.op.backward(opened(node), node.attrs, g, needs)
        else:  # what a node's own `backward` gives fits already
            contributions, fits = node.backward(saved, node.attrs, g, needs), None
        if run is not None:
            contributions = run.after(node, contributions, g)
        if saved and not retain and node.op.frees:
            node.saved, node.freed_by = None, consumer
        for position, edge in enumerate(needs):
            c = contributions[position]
            if edge is None or c is None:
                continue
            if fits is not None and fits[position] is not None:
                c = fit(c, *fits[position])
            old = totals.get(edge)
            totals[edge] = c if old is None else REGISTRY["add"](old, c)
        if run is not None:
            run.retire(node, totals)


def _run_arrays(
    order: list[Node],
    totals: dict[Edge, Any],
    retain: bool,
    consumer: tuple[Any, int],
    useful: dict[Any, tuple[Edge, ...]] | None,
) -> None:
    """The loop of `backward_pass` for bare arrays: a node's `backward` gives contributions that fit already."""
    get, pop = totals.get, totals.pop
    commonest = adders[0] if adders else _declines
    for node in order:
        edges, op = node.edges, node.op
        if useful is None:
            g = pop(node, None) if op.nout == 1 else _take(totals, node, keep=False)
        elif (found := useful.get(node)) is not None:
            g, edges = get(node) if op.nout == 1 else _take(totals, node, keep=True), found
        else:
            continue
        if g is None:
            continue
        saved = node.saved
        if saved is None:
            raise freed(node)
        for edge, c in zip(edges, node.backward(saved, node.attrs, g, edges)):
            if c is not None and edge is not None:
                old = get(edge)
                if old is None:
                    totals[edge] = c
                else:
                    total = commonest(old, c)
                    totals[edge] = added(old, c) if total is None else total
        if saved and not retain and op.frees:
            node.saved, node.freed_by = None, consumer


#: See `add_with`.
adders: Sequence[Callable[..., Any]] = ()


def add_with(builtins: Sequence[Callable[..., Any]]) -> None:
    """Take up builtins that add two arrays of one shape, per dtype, or decline with None."""
    global adders
    adders = builtins  # the list itself: its entries compile at first use and put what they have made in their place


def _declines(old: Any, c: Any) -> None:
    """The place of a builtin that is not there yet."""


def added(old: Any, c: Any) -> Any:
    """The sum of two arrays."""
    for add in adders:
        total = add(old, c)
        if total is not None:
            return total
    return REGISTRY["add"](old, c)


def _take(totals: dict[Edge, Any], node: Node, *, keep: bool) -> Any:
    """The cotangent of a node: one value, or a tuple with None for outputs that got none."""
    if node.op.nout == 1:
        return totals.get(node) if keep else totals.pop(node, None)
    gs = tuple(
        totals.get(edge) if keep else totals.pop(edge, None)
        for edge in (node, *((node, i) for i in range(1, node.op.nout)))
    )
    return None if all(g is None for g in gs) else gs


def leading_to(order: list[Node], wanted: set[Any]) -> dict[Any, tuple[Edge, ...]]:
    """The nodes from which a wanted edge can be reached, each with its edges, and None in place of those that lead
    elsewhere.
    """
    useful: dict[Any, tuple[Edge, ...]] = {}
    for node in reversed(order):
        edges, some = node.edges, False
        for i, edge in enumerate(edges):
            if edge is not None:
                if edge in wanted or (edge[0] if type(edge) is tuple else edge) in useful:
                    some = True
                else:
                    edges = (*edges[:i], None, *edges[i + 1 :])
        if some:
            useful[node] = edges
    return useful


def freed(node: Node) -> GraphFreedError:
    """The error for a node whose saved values are gone."""
    made, freed = node.source, locate(*node.freed_by) if node.freed_by else None
    where = f" It was freed by the call at {freed[0]}:{freed[1]}." if freed else ""
    return GraphFreedError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
        f"autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time. The "
        f"node is {node.name()}, made at {made[0]}:{made[1]} in {made[2]}.{where}"
    )
