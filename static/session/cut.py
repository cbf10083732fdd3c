"""The part of a graph that a run needs, as a program for the compiler.

Operations run in the order in which they were made; data and control dependencies only point backwards, so that order
keeps all of them. Reads and writes of state disappear: a read is the value that the last write before it has written in
this run, or else an input; the last write of each state is an effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.core.errors import SessionError, ShapeError
from common.core.polynomials import Atom, evaluate
from common.core.sizes import Dim, DimScope
from static.graph import Effect, Graph, Node, Value
from static.graph.verify import verify
from static.session.building import Building
from static.session.graph_tensor import GraphTensor, Operation, at
from static.session.open_sizes import Rewrite, solve
from static.session.recording import ASSIGN, DEFAULT, GROUP


class Cut:
    """The part of a graph that computes `fetches` from `feeds`.

    Attributes
    ----------
    outputs : values that are fetched, each once.
    states : variables, and tensors with memory of their own, that it reads or writes; the inputs after the feeds.
    read, written : of the states, those whose value on entry matters, and those that it writes.
    constants : arrays; the last inputs.

    Raises
    ------
    SessionError : a placeholder is needed that is not fed; names it, its line, and who needs it.
    """

    def __init__(
        self, graph: Building, fetches: Sequence[GraphTensor | Operation], feeds: Sequence[GraphTensor]
    ) -> None:
        self._trace, self.feeds = graph.trace, list(feeds)
        fed = {x.payload.key for x in feeds}
        # a variable that is fed has that value in the whole run
        self._fed_state = {id(x): i for i, x in enumerate(feeds) if type(x) is not GraphTensor}
        self.outputs = list({x.payload.key: x.payload for x in fetches if isinstance(x, GraphTensor)}.values())
        roots = [v.node for v in self.outputs if v.key not in fed]
        roots += [x.node for x in fetches if isinstance(x, Operation)]
        self.nodes = self._needed(roots, fed)
        self.states: list[Any] = []
        self.read: list[Any] = []
        self.written: list[Any] = []
        self.constants: list[Node] = []
        self._list_inputs()

    def _needed(self, roots: Sequence[Node], fed: set[Any]) -> list[Node]:
        """Nodes to run, in order; each node's needs are followed until they are fed."""
        trace = self._trace
        needed: dict[int, Node] = {}
        self._follow([(node, node) for node in roots], needed, fed)
        for act in trace.top:  # what is printed or asserted is so in every run that has what it depends on
            if act.op is not None and act.op.kind == "act":
                more = needed.copy()
                self._follow([(act, act)], more, fed, refuse=False)
                new = [node for i, node in more.items() if i not in needed]
                if not any(node.op is None or node.op is ASSIGN for node in new):
                    needed = more
        return [needed[i] for i in sorted(needed)]

    def _follow(
        self, stack: list[tuple[Node, Node]], needed: dict[int, Node], fed: set[Any], refuse: bool = True
    ) -> None:
        trace = self._trace
        while stack:
            node, user = stack.pop()
            if node.id in needed:
                continue
            needed[node.id] = node
            if refuse and node.op is None and trace.roles[node.id].kind == "placeholder":
                self._refuse_unfed(node, user)
            for value in node.values:
                if value.key not in fed:
                    stack.append((value.node, node))
            for i in (*trace.controls.get(node.id, ()), *trace.follows.get(node.id, ())):
                stack.append((trace.by_id[i], node))

    def _refuse_unfed(self, node: Node, user: Node) -> None:
        graph = self._trace.graph
        x = graph.tensor(node.outputs[0])
        by = f", which {graph.operation(user)!r} needs" if user is not node else ""
        raise SessionError(f"you must feed a value for the placeholder {x!r}{by}: run(fetches, {{x: value}})")

    def _list_inputs(self) -> None:
        entered: dict[int, Any] = {}
        written: dict[int, Any] = {}
        read: dict[int, Any] = {}
        for node in self.nodes:
            if node.op is None and (role := self._trace.roles[node.id]).kind != "placeholder":
                if role.kind == "const":
                    self.constants.append(node)
                elif id(role.of) not in self._fed_state:
                    entered[id(role.of)] = role.of
                    if id(role.of) not in written:
                        read[id(role.of)] = role.of
            elif node.op is ASSIGN:
                state = self._trace.written[node.id]
                entered[id(state)] = written[id(state)] = state
        self.states, self.read, self.written = list(entered.values()), list(read.values()), list(written.values())

    def sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[Atom, int]:
        """The sizes of a run whose feeds have these shapes.

        Raises
        ------
        ShapeError : they do not fit their tensors, each other, or what the graph relies on; names node and line.
        """
        env: dict[Atom, int] = {}
        dims = self._trace.dims
        pairs = list(zip(self.feeds, shapes, strict=True))
        for last in (False, True):  # a size may follow from what is fed later
            for x, shape in pairs:
                wrong = solve(x.payload.spec, shape, env)
                if wrong is not None and last:
                    raise ShapeError(f"cannot feed an array of shape {shape} for {x!r}: {wrong}")
            dims.complete(env)
        for node in self.nodes:
            if node.op is DEFAULT and node.id not in {x.payload.node.id for x in self.feeds}:
                (given,) = node.values
                shape = tuple(evaluate(n.terms, env) if isinstance(n, Dim) else n for n in given.shape)
                solve(node.outputs[0].spec, shape, env)
                dims.complete(env)
        dims.check(self.nodes, env)
        return env

    @property
    def guards(self) -> list[str]:
        """The assumptions about sizes."""
        return list(self._trace.dims.needed(self.nodes))

    def program(self, env: Mapping[Atom, int]) -> tuple[Graph, DimScope]:
        """The program, symbolic in all sizes that are not 1, and what is known of these.

        Raises
        ------
        ShapeError : a size that it needs does not follow from what is fed.
        """
        trace, rewrite = self._trace, Rewrite(self._trace.dims, self.nodes, env)
        new: dict[tuple[int, int], Value] = {}
        count = len(self.feeds) + len(self.states) + len(self.constants)
        inputs: list[Value] = []

        def enter(value: Value, name: str) -> Value:
            spec = rewrite.spec(value.spec)
            node = Node(len(inputs) - count, None, (), {"name": name}, (spec,), value.node.source)
            inputs.append(node.outputs[0])
            return node.outputs[0]

        for x in self.feeds:
            new[x.payload.key] = enter(x.payload, x.op.name)
        present: dict[int, Value] = {i: inputs[position] for i, position in self._fed_state.items()}
        entries: dict[int, Value] = {}
        for state in self.states:
            name = state.op.name if isinstance(state, GraphTensor) else getattr(state, "name", "") or "tensor"
            entries[id(state)] = enter(self._like(state), name)
            present.setdefault(id(state), entries[id(state)])
        for node in self.constants:
            new.setdefault(node.outputs[0].key, enter(node.outputs[0], trace.graph.operation(node).name))
        nodes = [value.node for value in inputs]
        for node in self.nodes:
            try:
                self._step(node, rewrite, new, present, nodes)
            except KeyError as error:
                if type(error.args[0]) is not tuple or error.args[0][:1] != ("in",):
                    raise
                raise ShapeError(
                    f"{trace.graph.operation(node)!r} needs dimension {error.args[0][2]} of {error.args[0][1]!r}, "
                    "which does not follow from what is fed"
                ) from None
        effects = [Effect(entries[id(state)], present[id(state)]) for state in self.written]
        program = Graph(inputs, nodes, [new[v.key] for v in self.outputs], effects)
        verify(program, "cutting the graph")
        return program, rewrite.scope

    def _like(self, state: Any) -> Value:
        """A value with the shape and dtype of a state."""
        return next(
            node.outputs[0]
            for node in self.nodes
            if (self._trace.written.get(node.id) if node.op is not None else self._trace.roles[node.id].of) is state
        )

    def _step(
        self, node: Node, rewrite: Rewrite, new: dict[Any, Value], present: dict[int, Value], nodes: list[Node]
    ) -> None:
        """Carry one node over."""
        if node.op is None:
            role = self._trace.roles[node.id]
            if role.kind == "variable":
                new.setdefault(node.outputs[0].key, present[id(role.of)])
        elif node.op is ASSIGN:
            value = present[id(self._trace.written[node.id])] = new[node.operands[0].key]
            new.setdefault(node.outputs[0].key, value)
        elif node.op is DEFAULT:
            if node.outputs[0].key not in new:
                new[node.outputs[0].key] = new[node.operands[0].key]
        elif node.op is not GROUP:
            made = rewrite.node(node, new)
            if made is not None:
                nodes.append(made)


def describe(state: Any) -> str:
    """A variable by its name and line."""
    return f"{state.name!r} (made at {at(state.payload.node.source)})"
