"""Sizes that a graph leaves open: assumptions of building, and their values in a run.

Each None in the shape of a placeholder is a `Dim`, which has no Python value. A comparison of such sizes is answered
for a size of `HINT`, and becomes a guard on the nodes that the same line makes after it: a run checks the guard if it
needs one of them. That a size is not 1 decides only whether a gradient is summed over a repeated dimension; a run that
is cut for a size of 1 leaves such a sum out, so every size has the bits of the eager engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from common.core.errors import ShapeError, TraceError
from common.core.op import UNBROADCAST
from common.core.polynomials import Atom, Guard, Terms, evaluate, is_plain, render
from common.core.sizes import Dim, DimScope
from common.core.spec import Spec
from static.graph import Graph, Node, Source, Value

if TYPE_CHECKING:
    from static.tracing.recorder import Recorder

HINT = 97
"""The value of an open size while a graph is built: a number that no program means."""

_ONE: Terms = (((), 1),)


class Sizes(DimScope):
    """The guards of a graph, and what was built on them.

    Attributes
    ----------
    lines : guard as text -> the line that decided it first.
    relying : guard as text -> ids of the nodes for which it holds.
    repeated : id of a sum of a gradient -> the sizes over which it sums because they are not 1.
    """

    def __init__(self, trace: Recorder) -> None:
        super().__init__(trace.constant, lambda dim: trace.wrap(trace.constant(dim)))
        self._trace = trace
        self.lines: dict[str, Source] = {}
        self.relying: dict[str, set[int]] = {}
        self.repeated: dict[int, list[Terms]] = {}
        self._reasons: dict[Atom, str] = {}
        self._line: Source | None = None
        self._decided: set[str] = set()
        self._in_regions: set[str] = set()
        self._not_one: list[Guard] = []

    # ------------------------------------------------------------------ while the graph is built

    def decide(self, relation: str, left: Terms, right: Terms, holds: bool) -> bool:
        """Rely on a relation of sizes. An open size that meets a number is that number: else nothing would fit."""
        if relation == "==" and not holds:
            hints = _Hints()
            x, y = (evaluate(DimScope.canonical(self, terms), hints) for terms in (left, right))
            holds = x == y or (_is_open(left) and _is_number(right) and y > 1)
            holds = holds or (_is_open(right) and _is_number(left) and x > 1)
        self.rely(relation, left, right, holds)  # anew for each line
        return holds

    def settled(self, dim: Dim) -> Any:
        """A size of a new value as it is: that it is 1, or another number, is seen when a run is cut."""
        return dim

    def concrete(self, dim: Dim) -> int:
        """The number of a size that is known.

        Raises
        ------
        TraceError : a run decides it.
        """
        terms = self.canonical(dim.terms)
        if not _is_number(terms):
            file, line, function = self._trace._source()
            raise TraceError(
                f"{file}:{line} in {function} needs the number {render(dim.terms)}, which only a run knows: give the "
                "placeholder this size"
            )
        return evaluate(terms, {})

    def guard(self, guard: Guard) -> None:
        """Record a guard once; the nodes that follow rely on it."""
        text = str(guard)
        self.guards.setdefault(text, guard)
        self.lines.setdefault(text, self._trace._source())
        if guard.relation == "==" and not guard.holds and guard.right == _ONE:
            self._not_one.append(guard)
        else:
            self._rely(text)

    def unify(self, left: Terms, right: Terms) -> None:
        """Two sizes that a guard keeps equal are one; a size that meets another number than before is that now."""
        if _is_number(left):
            left, right = right, left
        text, known = str(Guard("==", left, right, True)), set(self.renamed)
        if _is_open(left) and _is_number(right):
            atom = left[0][0][0]
            while atom in self.renamed and is_plain(self.renamed[atom]):
                atom = self.renamed[atom][0][0][0]
            self.rename(atom, right)
            known.discard(atom)
        else:
            super().unify(left, right)
        for atom in self.renamed.keys() - known:
            self._reasons[atom] = text

    def canonical(self, terms: Terms) -> Terms:
        """`terms` with equal sizes written as one; what follows relies on the guards that keep them so."""
        for atoms, _ in terms if self.renamed else ():
            for atom in atoms:
                if atom in self._reasons:
                    self._rely(self._reasons[atom])
                    self.canonical(self.renamed[atom])
        return super().canonical(terms)

    def _rely(self, text: str) -> None:
        if self._trace.regions:
            self._in_regions.add(text)
            return
        line = self._trace._source()
        if line != self._line:
            self._line, self._decided = line, set()
        self._decided.add(text)

    def made(self, node: Node) -> None:
        """A node follows on the decisions before it."""
        waiting, self._not_one = self._not_one, []
        if waiting and node.name == UNBROADCAST:
            self.repeated[node.id] = [guard.left for guard in waiting]
        else:
            for guard in waiting:
                self._rely(str(guard))
        if self._trace.regions:
            return
        if node.regions:
            self._note(self._in_regions, node)
            self._in_regions = set()
        if self._decided:
            if self._trace._source() == self._line:
                self._note(self._decided, node)
            else:
                self._decided = set()

    def follow(self, *nodes: Node) -> None:
        """Nodes that were made before rely on the decisions on this line, too."""
        waiting, self._not_one = self._not_one, []
        for guard in waiting:
            self._rely(str(guard))
        for node in nodes:
            self._note(self._in_regions if self._trace.regions else self._decided, node)

    def _note(self, texts: set[str], node: Node) -> None:
        for text in texts:
            self.relying.setdefault(text, set()).add(node.id)

    # ------------------------------------------------------------------ in a run

    def complete(self, env: dict[Atom, int]) -> None:
        """Add to `env` the sizes that guards keep equal to those in it."""
        roots = [(atom, super(Sizes, self).canonical((((atom,), 1),))) for atom in self.renamed]
        for atom, root in roots:
            if is_plain(root) and atom in env:
                env.setdefault(root[0][0][0], env[atom])
        for atom, root in roots:
            if all(part in env for atoms, _ in root for part in atoms):
                env.setdefault(atom, evaluate(root, env))

    def needed(self, nodes: Iterable[Node]) -> dict[str, Guard]:
        """The guards on which some nodes rely."""
        ids = {node.id for node in nodes}
        return {text: self.guards[text] for text, relying in self.relying.items() if not ids.isdisjoint(relying)}

    def check(self, nodes: Iterable[Node], env: Mapping[Atom, int]) -> None:
        """Refuse sizes for which nodes were not built.

        Raises
        ------
        ShapeError : one breaks a guard; names the line that made it.
        """
        broken: dict[str, str] = {}  # by what the sizes of placeholders are in it
        for text, guard in self.needed(nodes).items():
            if _known(guard.left, env) and _known(guard.right, env) and not guard.check(env):
                values = ", ".join(f"{name} = {n}" for name, n in _named((guard.left, guard.right), env))
                broken.setdefault(values, text)
        for values, text in sorted(broken.items(), key=lambda pair: not pair[0])[:1]:
            file, line, function = self.lines[text]
            raise ShapeError(
                f"the graph was built for sizes with {text}, but {values} in this run; {file}:{line} in {function} "
                "relies on it. Give the placeholder this size, or build a graph for it"
            )


class _Hints(dict[Atom, int]):
    """Sizes in place of open ones while a graph is built."""

    def __missing__(self, atom: Atom) -> int:
        return HINT if atom[0] == "in" else 64


def _is_open(terms: Terms) -> bool:
    """Whether terms are one open size, and nothing else."""
    return len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1 and terms[0][0][0][0] == "in"


def _is_number(terms: Terms) -> bool:
    return all(not atoms for atoms, _ in terms)


def solve(spec: Spec, shape: tuple[int, ...], env: dict[Atom, int]) -> str | None:
    """Add to `env` what the shape of a fed array says of the sizes of its tensor.

    Returns
    -------
    What does not fit; None if all does.
    """
    if len(spec.shape) != len(shape):
        return f"it has {len(shape)} dimensions, not {len(spec.shape)}"
    for axis, (size, n) in enumerate(zip(spec.shape, shape)):
        terms = size.terms if isinstance(size, Dim) else ((((), size),) if size else ())
        unknown = {a for atoms, _ in terms for a in atoms if not _known(((atoms, 1),), env)}
        if len(unknown) == 1 and len(plain := [t for t in terms if t[0] == tuple(unknown)]) == 1:
            rest = evaluate(tuple(t for t in terms if t is not plain[0]), env) if _only(terms, plain[0], env) else None
            if rest is not None and (n - rest) % plain[0][1] == 0:
                env[plain[0][0][0]] = (n - rest) // plain[0][1]
        if not _known(terms, env):
            return f"the sizes on which dimension {axis} depends do not follow from what is fed"
        if evaluate(terms, env) != n:
            return f"dimension {axis} is {n}, and not {evaluate(terms, env)}"
    return None


def _only(terms: Terms, plain: Any, env: Mapping[Atom, int]) -> bool:
    return all(t is plain or _known((t,), env) for t in terms)


def _known(terms: Terms, env: Mapping[Atom, int]) -> bool:
    return all(_atom_known(atom, env) for atoms, _ in terms for atom in atoms)


def _atom_known(atom: Atom, env: Mapping[Atom, int]) -> bool:
    return atom in env or (atom[0] in ("//", "%") and _known(atom[1], env) and _known(atom[2], env))


def _named(sides: Iterable[Terms], env: Mapping[Atom, int]) -> list[tuple[str, int]]:
    found = {atom: env[atom] for terms in sides for atoms, _ in terms for atom in atoms if atom in env}
    return [(f"dimension {atom[2]} of {atom[1]}", n) for atom, n in found.items()]


class Rewrite:
    """Copies of nodes whose sizes are those of a run.

    Parameters
    ----------
    sizes : the graph's.
    nodes : what is run; sizes that are equal for them are one.
    env : the sizes of a run. Those that are 1 become numbers: broadcasting depends on them. The others stay symbolic.

    Attributes
    ----------
    scope : of the symbolic ones.
    """

    def __init__(self, sizes: Sizes, nodes: Iterable[Node], env: Mapping[Atom, int]) -> None:
        self.scope, self._repeated, self._env = DimScope(sizes.constant, sizes.number), sizes.repeated, env
        for guard in sizes.needed(nodes).values():
            if guard.relation == "==" and guard.holds:
                self.scope.unify(guard.left, guard.right)
        self._sizes: dict[Terms, Any] = {}

    def _atom(self, atom: Atom) -> Any:
        if atom[0] in ("//", "%"):
            a, b = self._terms(atom[1]), self._terms(atom[2])
            return a // b if atom[0] == "//" else a % b
        if atom[0] == "room":
            return Dim((((atom,), 1),), self._env.get(atom, 64), self.scope)
        root = self.scope.canonical((((atom,), 1),))
        if not _is_number(root) and self._env[atom] == 1:
            return 1
        return Dim(root, self._env[atom], self.scope) if is_plain(root) else self._terms(root)

    def _terms(self, terms: Terms) -> Any:
        if terms not in self._sizes:
            self._sizes[terms] = self._evaluated(terms)
        return self._sizes[terms]

    def _evaluated(self, terms: Terms) -> Any:
        total: Any = 0
        for atoms, coefficient in terms:
            product: Any = coefficient
            for atom in atoms:
                product = product * self._atom(atom)
            total = total + product
        return total

    def plain(self, x: Any) -> Any:
        """An attribute, or a shape."""
        if isinstance(x, Dim):
            return self._terms(x.terms)
        if isinstance(x, (tuple, list)):
            return type(x)(map(self.plain, x))
        return self._region(x) if isinstance(x, Graph) else x

    def spec(self, spec: Spec) -> Spec:
        """The known spec of a value."""
        return Spec(self.plain(spec.shape), spec.dtype, spec.weak)

    def node(self, node: Node, new: dict[tuple[int, int], Value]) -> Node | None:
        """A node whose operands are in `new`, which takes its results; None for a sum over single elements."""
        operands = tuple(new[x.key] if type(x) is Value else x for x in node.operands)
        attrs = {name: self.plain(x) for name, x in node.attrs.items()}
        if node.id in self._repeated:
            over = [i for i in attrs["dim"] if not self._single(node, i)]
            if not over:
                new.setdefault(node.outputs[0].key, operands[0])
                return None
            attrs["dim"] = tuple(over)
        made = Node(
            node.id, node.op, operands, attrs, [self.spec(v.spec) for v in node.outputs], node.source, node.scope
        )
        for old, value in zip(node.outputs, made.outputs, strict=True):
            new.setdefault(old.key, value)
        return made

    def _single(self, node: Node, axis: int) -> bool:
        (x,) = node.values
        size = x.shape[axis]
        return isinstance(size, Dim) and size.terms in self._repeated[node.id] and self._terms(size.terms) == 1

    def _region(self, graph: Graph) -> Graph:
        new: dict[tuple[int, int], Value] = {}
        nodes = [made for node in graph.nodes if (made := self.node(node, new)) is not None]
        return Graph([new[v.key] for v in graph.inputs], nodes, [new[v.key] for v in graph.outputs], [])
