"""States of loops whose last dimension is short, with that dimension first: a few long rows for many short ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from common.core.sizes import hint, key, same, same_shape
from common.core.spec import Spec
from common.ops.shape.view import expand_, permute_, reshape_
from static.graph import Graph, Node, Value, derived_id
from static.graph.nodes import Effect
from static.graph.region_edit import LoopEdit
from static.graph.regions import LOOP

LONGEST = 8
"""Elements of a dimension that is put first."""
SHORTEST = 8
"""Rows, or more, of which the last dimension is one."""

Key = tuple[int, int]
Shape = tuple[Any, ...]


def turn_states(graph: Graph) -> Graph:
    """loop(h) { f(h) } -> loop(h^T) { f(h^T)^T }, where f is computed element by element, or sums rows.

    A vector has elements of as many short rows as it is wide. Where they lie behind each other, a state is put in
    another order when it is read, and back when it is written, in each iteration; so it is done once, around the loop.
    A state that a loop stacks for its gradient is stacked in the order in which that is computed.
    """
    plans = {node.id: plan for node in graph.nodes if node.op is LOOP and (plan := _plan(node)) is not None}
    while True:
        joined = _joined(graph, plans)
        poor = [i for i, plan in plans.items() if not plan.pays(joined)]
        if not poor:
            break
        for i in poor:
            del plans[i]
    if not plans:
        return graph
    nodes, new = list[Node](), dict[Key, Value]()
    for old in graph.nodes:
        operands = tuple(new[x.key] if type(x) is Value else x for x in old.operands)
        node = Node(old.id, old.op, operands, old.attrs, (x.spec for x in old.outputs), old.source, old.scope)
        own, results = [node], list(node.outputs)
        if old.id in plans:
            own, results = _turned_loop(node, plans[old.id], joined)
        nodes += own
        new.update(zip((x.key for x in old.outputs), results, strict=True))
    effects = [Effect(new[e.state.key], new[e.value.key]) for e in graph.effects]
    return Graph([new[x.key] for x in graph.inputs], nodes, [new[x.key] for x in graph.outputs], effects)


class _Plan(NamedTuple):
    """A loop whose body can be computed with the last dimension of its states first.

    Attributes
    ----------
    lead : the shape of a state without its last dimension.
    carried : places of states.
    constants : how many constants have the shape of one.
    rows, stacked : keys of the values outside of rows and of stacked results that have it.
    """

    lead: Shape
    carried: list[int]
    constants: int
    rows: list[Key]
    stacked: list[Key]

    def pays(self, joined: set[Key]) -> bool:
        """Whether less is put in order inside than before: `joined` are the stacks between turned loops."""
        apart = sum(key not in joined for key in (*self.rows, *self.stacked))
        return 2 * apart < len(self.carried) + self.constants + len(self.rows) + len(self.stacked)


def _first(sizes: Iterable[Any]) -> Shape:
    """The last entry, then the others."""
    *others, last = sizes
    return (last, *others)


def _is_state(x: Any, lead: Shape) -> bool:
    if type(x) is not Value or len(x.shape) != len(lead) + 1 or not all(map(same, x.shape, lead)):
        return False
    return not _is_one(x.shape[-1]) and 2 <= hint(x.shape[-1]) <= LONGEST


def _is_one(size: Any) -> bool:
    return type(size) is int and size == 1


def _plan(node: Node) -> _Plan | None:
    """How a loop is turned; None if it is not."""
    edit = LoopEdit(node)
    if edit.parts.condition is not None:
        return None
    leads = Counter(tuple(map(key, x.shape[:-1])) for _, x, *_ in edit.carried if _is_state(x, x.shape[:-1]))
    if not leads:
        return None
    (name, _), *_ = leads.most_common(1)
    lead = next(x.shape[:-1] for _, x, *_ in edit.carried if tuple(map(key, x.shape[:-1])) == name)
    size = 1
    for n in lead:
        size *= hint(n)
    if size < SHORTEST:
        return None
    carried = [k for k, entry in enumerate(edit.carried) if _is_state(entry[1], lead)]
    if any(_is_state(x, lead) != _is_state(y, lead) for _, x, y, *_ in edit.carried):
        return None
    body = _Body(edit.parts.body, lead)
    body.take({x.key for _, x, *_ in edit.carried})
    if not body.fits or not body.short:
        return None
    return _Plan(
        lead,
        carried,
        sum(_is_state(x, lead) for _, x in edit.constants),
        [x.key for x, y in edit.rows if _is_state(y, lead)],
        [node.outputs[old].key for x, old in edit.stacked if _is_state(x, lead)],
    )


def _joined(graph: Graph, plans: dict[int, _Plan]) -> set[Key]:
    """Keys of the stacks that turned loops give to turned loops, and to nothing else."""
    found = {key for plan in plans.values() for key in plan.stacked}
    found -= {x.key for x in graph.results}
    for node in graph.nodes:
        if node.id not in plans:
            found -= {x.key for x in node.values}
            continue
        edit, rows = LoopEdit(node), plans[node.id].rows
        read = [x for x, *_ in (*edit.carried, *edit.constants)]
        read += [x for x, _ in edit.rows if x.key not in rows]
        found -= {x.key for x in read if type(x) is Value}
    return found


# ---------------------------------------------------------------- a body
class _Body:
    """A body computed with the last dimension of states first.

    Attributes
    ----------
    nodes : those of the new body.
    fits : whether all that reads or makes a state is known.
    short : whether something reads or makes short rows as such: a sum of each, one number for each.
    """

    def __init__(self, body: Graph, lead: Shape) -> None:
        self.body, self.lead, self.rank = body, lead, len(lead) + 1
        self.nodes: list[Node] = []
        self.fits, self.short = True, False
        self._plain: dict[Key, Value] = {}
        self._turned: dict[Key, Value] = {}

    def take(self, turned: set[Key]) -> None:
        """Make the new body.

        Parameters
        ----------
        turned : keys of the inputs that are turned outside.
        """
        for node in self.body.nodes:
            if node.op is None:
                self._input(node, turned)
                continue
            if not any(_is_state(x, self.lead) for x in (*node.values, *node.outputs)):
                self._keep(node)
                continue
            made = None if node.regions or len(node.outputs) != 1 else self._made(node)
            if made is None:
                self.fits = False
                return

    def plain(self, x: Value) -> Value:
        """A value of the old body in its own order."""
        if x.key not in self._plain:
            self._plain[x.key] = self._add(x.node, permute_, (self._turned[x.key],), x, x.shape, 1, dims=self._back())
        return self._plain[x.key]

    def turned(self, x: Value) -> Value:
        """A value of the old body with its last dimension first; others than states get as many dimensions."""
        if x.key in self._turned:
            return self._turned[x.key]
        self._turned[x.key] = self._first_of(self._plain[x.key], x, ((1,) * self.rank + tuple(x.shape))[-self.rank :])
        return self._turned[x.key]

    def _first_of(self, value: Value, x: Value, shape: Shape) -> Value:
        """A value under a shape of as many dimensions as a state has, with the last one first, for `x`."""
        if _is_one(shape[-1]) or sum(not _is_one(n) for n in shape) < 2:
            return self._add(x.node, reshape_, (value,), x, _first(shape), 3, new_shape=_first(shape))
        if not same_shape(value.shape, shape):
            value = self._add(x.node, reshape_, (value,), x, shape, 2, new_shape=shape)
        return self._add(x.node, permute_, (value,), x, _first(shape), 3, dims=(self.rank - 1, *range(self.rank - 1)))

    def _back(self) -> tuple[int, ...]:
        return (*range(1, self.rank), 0)

    def _add(self, like: Node, op: Any, operands: Any, of: Value, shape: Shape, number: int, **attrs: Any) -> Value:
        ids = derived_id(*of.key, number)
        node = Node(ids, op, operands, attrs, [Spec(shape, of.dtype, of.spec.weak)], like.source, like.scope)
        self.nodes.append(node)
        return node.outputs[0]

    def _input(self, node: Node, turned: set[Key]) -> None:
        (x,) = node.outputs
        outside = x.key in turned and _is_state(x, self.lead)
        shape = _first(x.shape) if outside else x.shape
        new = Node(node.id, None, (), node.attrs, [Spec(shape, x.dtype, x.spec.weak)], node.source, node.scope)
        self.nodes.append(new)
        (self._turned if outside else self._plain)[x.key] = new.outputs[0]

    def _keep(self, node: Node) -> None:
        operands = tuple(self._plain[x.key] if type(x) is Value else x for x in node.operands)
        new = Node(node.id, node.op, operands, node.attrs, (x.spec for x in node.outputs), node.source, node.scope)
        self.nodes.append(new)
        self._plain.update(zip((x.key for x in node.outputs), new.outputs, strict=True))

    def _put(self, node: Node, operands: Iterable[Any], shape: Shape, /, **attrs: Any) -> Value:
        """The node with other operands, shape and attributes."""
        out = node.outputs[0]
        spec = Spec(shape, out.dtype, out.spec.weak)
        new = Node(node.id, node.op, tuple(operands), {**node.attrs, **attrs}, [spec], node.source, node.scope)
        self.nodes.append(new)
        return new.outputs[0]

    def _made(self, node: Node) -> Value | None:
        """What stands in the place of a node that reads or makes a state; None if that is not known."""
        out, op = node.outputs[0], node.op
        assert op is not None
        make: Callable[[Node], Value | None] | None = None
        if op.kind in ("elementwise", "reduction"):
            make = {"elementwise": self._elementwise, "reduction": self._reduction}[op.kind]
        elif op.parts in (ways := {"part": self._part, "join": self._join, "stack up": self._join, "pad": self._pad}):
            make = ways[op.parts]
        elif not [*node.values] and set(node.attrs) >= {"shape"} and op.fill is not None:
            make = self._filled
        elif op is expand_:
            make = self._expanded
        made = None if make is None else make(node)
        if made is not None:
            (self._turned if _is_state(out, self.lead) else self._plain)[out.key] = made
        return made

    def _elementwise(self, node: Node) -> Value | None:
        (out,) = node.outputs
        if not _is_state(out, self.lead):
            return None
        sizes = [x.shape[-1] for x in node.values if len(x.shape) == self.rank]
        self.short |= any(map(_is_one, sizes))
        return self._put(node, (self.turned(x) if type(x) is Value else x for x in node.operands), _first(out.shape))

    def _expanded(self, node: Node) -> Value | None:
        (out,), (x,) = node.outputs, node.operands
        if not _is_state(out, self.lead):
            return None
        self.short |= len(x.shape) == self.rank and _is_one(x.shape[-1])
        return self._put(node, (self.turned(x),), _first(out.shape), new_shape=_first(out.shape))

    def _filled(self, node: Node) -> Value | None:
        shape = _first(node.outputs[0].shape)
        return self._put(node, node.operands, shape, shape=shape)

    def _reduction(self, node: Node) -> Value | None:
        """The order of a sum depends on the dimensions that are summed, not on how they lie."""
        (out,), (x,), last = node.outputs, node.operands, self.rank - 1
        dim = tuple(node.attrs["dim"])
        if _is_state(out, self.lead) or dim not in ((last,), tuple(range(last))):
            return None
        self.short |= dim == (last,)
        kept = node.attrs["keepdim"]
        shape = _first(out.shape) if kept else out.shape
        made = self._put(node, (self.turned(x),), shape, dim=tuple((d + 1) % self.rank for d in dim))
        return made if not kept else self._add(node, reshape_, (made,), out, out.shape, 4, new_shape=out.shape)

    def _part(self, node: Node) -> Value | None:
        """A part of a state; of one element of its rows, or of some."""
        (out,), (x,) = node.outputs, node.operands
        if not _is_state(x, self.lead):
            return None
        attrs = {name: _first(node.attrs[name]) for name in ("starts", "sizes", "steps")}
        dims = node.attrs.get("dims")
        if dims is not None:
            if _is_state(out, self.lead):
                return None
            self.short = True
            moved = tuple(None if d is None else (d + 1) % self.rank for d in dims)
            return self._put(node, (self.turned(x),), out.shape, **attrs, dims=moved)
        if _is_state(out, self.lead):
            return self._put(node, (self.turned(x),), _first(out.shape), **attrs)
        if not all(map(same, out.shape[:-1], self.lead)):
            return None
        self.short = True
        made = self._put(node, (self.turned(x),), _first(out.shape), **attrs)
        return self._add(node, reshape_, (made,), out, out.shape, 4, new_shape=out.shape)

    def _join(self, node: Node) -> Value | None:
        (out,), dim = node.outputs, node.attrs["dim"]
        if not _is_state(out, self.lead) or dim != self.rank - 1:
            return None
        self.short = True
        stacks = node.op is not None and node.op.parts == "stack up"
        operands = [self._plain[x.key] if stacks else self.turned(x) for x in node.values]
        return self._put(node, operands, _first(out.shape), dim=0) if len(operands) == len(node.operands) else None

    def _pad(self, node: Node) -> Value | None:
        (out,), (x,) = node.outputs, node.operands
        names = ("shape", "starts", "sizes", "steps")
        if set(node.attrs) != set(names) or not _is_state(out, self.lead) or type(x) is not Value:
            return None
        self.short = True
        attrs = {name: _first(node.attrs[name]) for name in names}
        if _is_state(x, self.lead):
            return self._put(node, (self.turned(x),), _first(out.shape), **attrs)
        operand = self._first_of(self._plain[x.key], out, node.attrs["sizes"])
        return self._put(node, (operand,), _first(out.shape), **attrs)


# ---------------------------------------------------------------- a loop
def _turned_loop(node: Node, plan: _Plan, joined: set[Key]) -> tuple[list[Node], list[Value]]:
    """What stands in a loop's place: its states turned, the loop, and the states in their order; and its results."""
    edit, before, behind = LoopEdit(node), list[Node](), list[Node]()
    rank = len(plan.lead) + 1
    back = (*range(1, rank), 0)

    def permuted(x: Value, dims: tuple[int, ...], shape: Shape, number: int, into: list[Node]) -> Value:
        ids = derived_id(node.id, *x.key, number)
        into.append(Node(ids, permute_, (x,), {"dims": dims}, [Spec(shape, x.dtype, x.spec.weak)], node.source))
        return into[-1].outputs[0]

    entries = [*edit.carried, *edit.constants]
    rows = [entry for entry in edit.rows if entry[0].key in joined and _is_state(entry[1], plan.lead)]
    outside = {entry[1].key for entry in (*entries, *rows)}
    body = _Body(edit.parts.body, plan.lead)
    body.take(outside)

    for k, entry in enumerate(entries):
        x, inner = entry[0], entry[1]
        if not _is_state(inner, plan.lead):
            continue
        dims = (rank - 1, *range(rank - 1))
        entry[0] = permuted(x, dims, _first(x.shape), k, before) if type(x) is Value else x
    for entry in (*entries, *edit.rows):
        x = entry[1]
        entry[1] = body.turned(x) if x.key in outside and _is_state(x, plan.lead) else body.plain(x)
    for entry in edit.carried:
        entry[2] = body.turned(entry[2]) if _is_state(entry[2], plan.lead) else body.plain(entry[2])
    for entry in edit.stacked:
        turns = node.outputs[entry[1]].key in joined
        entry[0] = body.turned(entry[0]) if turns else body.plain(entry[0])
    edit.parts.body = Graph(edit.parts.body.inputs, body.nodes, edit.parts.body.outputs, [])
    made, places = edit.build()
    results = []
    for i, old in enumerate(node.outputs):
        value = made.outputs[places[i]]
        if i < edit.parts.n and i in plan.carried:
            value = permuted(value, back, old.shape, i, behind)
        results.append(value)
    return [*before, made, *behind], results
