"""Less memory at the peak: values that are needed much later are computed again there instead of being kept.

Three places ask what to keep, and one file answers. `rematerialise` is the pass of every program: it repeats what costs
a load, where operands are kept anyway. `Rematerialiser` is the last pass of a function with a budget of memory.
`kept_within` says what a compiled call hands to its backward half.

With a budget a minimum cut decides. A byte has a price in nanoseconds; what is cheaper to compute than to keep is
computed again. The price rises until the budget is kept: first loads are repeated, then functions, then products, and
in the end whole segments of a network. Arithmetic is strict, so computing again changes no bit.

References
----------
Griewank, Walther, Algorithm 799: revolve, 2000.
Chen and others, Training deep nets with sublinear memory cost, 2016.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from common.core.errors import ArgumentError
from common.core.garbage import collecting_now
from static.graph import Graph, Node, Value, rebuild
from static.graph.lifetimes import Key, Life, computed_again, lives, nbytes, runs_alone, temporaries, usage
from static.graph.minimum_cut import minimum_cut
from static.graph.recompute_cost import cost_again, nanoseconds

PRICES = (0.05, 0.5, 2.0, 8.0, 32.0, 1e6)
"""Nanoseconds that a byte is worth: more than a load costs, a transcendental function, products of growing size."""

WORTHWHILE = 1 << 23
"""Bytes at the peak from which on loads are repeated: less lies in a cache, and repeating would cost time only."""
STEPS = 6
"""A chain of so many values is computed at one go, in one loop; then one of them is kept."""

WINDOWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
ROUNDS, TRIES, PROGRESS = 4, 5, 0.95
"""How often the peak is lowered that is left, how often the target is, and what share each has to leave at most."""


Windows = list[tuple[int, set[Key]]]
"""Where windows end, and what is computed again in each."""


def rematerialise(graph: Graph) -> Graph:
    """y = f(x, ...) here and needed long after -> y = f(x, ...) again there, if x, ... are needed there, too.

    In ``x + tanh(layer(x))``, layer by layer, both each x and each tanh are kept for the backward pass; but an x is the
    sum of the one before and the tanh.
    """
    lived = lives(graph.nodes, graph.results)
    used = usage(len(graph.nodes), lived.values())
    peak = max(range(len(used)), key=used.__getitem__, default=0)
    kept = {key: life for key, life in lived.items() if life.start <= peak < life.end}
    if sum(life.nbytes for life in kept.values()) < WORTHWHILE:
        return graph
    again = _repeated_loads(kept, peak, {value.key for value in graph.inputs})
    return rebuild(graph, computed_again(graph, peak, [(len(graph.nodes), again)]), {}) if again else graph


def _repeated_loads(kept: dict[Key, Life], peak: int, inputs: set[Key]) -> dict[Key, int]:
    """Values that need not be kept, and how many values follow from each other up to them."""
    again: dict[Key, int] = {}
    for key, life in kept.items():
        op = life.value.node.op
        if op is None or op.kind != "elementwise" or op.costly or life.through_views:
            continue
        needed = min(position for position in life.uses if position > peak)
        operands = [value.key for value in life.value.node.values if value.key not in inputs]
        if all(o in kept and kept[o].end >= needed for o in operands):
            steps = 1 + max((again.get(o, 0) for o in operands), default=0)
            if steps <= STEPS:
                again[key] = steps
    return again


class Repeated(NamedTuple):
    """A node that is computed again: what it is and where it comes from, its bytes, and about how long it takes."""

    name: str
    nbytes: int
    nanoseconds: float


class Rematerialiser:
    """values that are needed much later -> computed again there, until temporaries take no more than a budget.

    A gradient needs the values that are alive at the peak at different times, those of the last layer first. So we
    divide the nodes behind the peak into windows. In each window a minimum cut separates what the window reads from the
    values that are alive; a value that is kept for a later window is alive in the earlier ones too. A window computes
    each value at most once, right before its first use.

    Parameters
    ----------
    name : of the function, for the message.
    budget : bytes.
    arena : the size of the memory for temporaries that a graph needs, by lowering it.

    Attributes
    ----------
    before, after : size of that memory without the pass, and with it.
    repeated : what is computed again.
    """

    __name__ = "rematerialise_within"

    def __init__(self, name: str, budget: int, arena: Callable[[Graph], int]) -> None:
        self._name, self.budget, self._arena = name, budget, arena
        self.before = self.after = self._least = 0
        self.repeated: list[Repeated] = []

    def __call__(self, graph: Graph) -> Graph:
        """The rewritten graph.

        Raises
        ------
        ArgumentError : temporaries cannot be made so small.
        """
        with collecting_now():
            return self._within(graph)

    def _within(self, graph: Graph) -> Graph:
        self.before = self.after = self._least = self._arena(graph)
        self.repeated, seen = [], [graph]
        if self.before <= self.budget:
            return graph
        for found in self._tried(BudgetSearch(graph)):
            if any(found is known for known in seen):
                continue
            seen.append(found)
            self.after = self._arena(found)
            if self.after <= self.budget:
                known = {node.id for node in graph.nodes}
                self.repeated = [_told(node) for node in found.nodes if node.id not in known]
                return found
            self._least = min(self._least, self.after)
        raise ArgumentError(
            f"memory_budget of {self._name} is {self.budget} bytes, but its temporaries take at least {self._least} "
            f"bytes, and {self.before} if nothing is computed again"
        )

    def _tried(self, start: BudgetSearch) -> Iterator[Graph]:
        """Graphs that may keep to the budget: for less and less while they do not, then for all shares in turn.

        Estimates are not what lowering makes of them, mostly less, so the least estimate need not be the least arena.
        """
        target = start.most * self.budget / self.before
        for _ in range(TRIES):
            found = start.within(target)
            yield found.graph
            if found.most > target:
                break
            target *= min(PROGRESS, self.budget / self.after)
        shares = [start.within(share * start.most) for share in SHARES]
        scale = PROGRESS * self.before / max(start.most, 1)
        yield from (x.graph for x in shares if x.most * scale <= self.budget)
        yield from (x.graph for x in reversed(shares) if x.most * scale <= self._least)


class BudgetSearch:
    """A graph, and the ways of computing more again behind its peak, each of which is judged once.

    Attributes
    ----------
    peak, most : the position behind which most memory is in use, and how much that is, about.
    """

    def __init__(self, graph: Graph, rounds: int = ROUNDS) -> None:
        self.graph, self._rounds = graph, rounds
        self._core, self._behind = _core(graph)
        self.peak, self.most = _peak(self._core.nodes, graph)
        self._untried = _ways(self._core, self.peak)
        self._tried: list[tuple[int, Windows]] = []
        self._after: dict[int, BudgetSearch] = {}

    def within(self, target: float) -> BudgetSearch:
        """A graph of which about `target` bytes are temporaries at the peak, or as few as can be had."""
        best, least = None, self.most
        if self._rounds and self.most > target:
            for i, needed in enumerate(self._needed()):
                if needed < least:
                    best, least = i, needed
                if needed <= target:
                    break
        if best is None:
            return self
        if best not in self._after:
            nodes = computed_again(self._core, self.peak, self._tried[best][1], self._behind)
            self._after[best] = BudgetSearch(rebuild(self.graph, nodes, {}), self._rounds - 1)
        after = self._after[best]
        return after if after.most > PROGRESS * self.most else after.within(target)

    def _needed(self) -> Iterator[int]:
        """The peak memory of each way, the cheapest way first."""
        yield from (needed for needed, _ in self._tried)
        for windows in self._untried:
            needed = _peak(computed_again(self._core, self.peak, windows), self.graph)[1]
            self._tried.append((needed, windows))
            yield needed


def _core(graph: Graph) -> tuple[Graph, list[Node]]:
    """The nodes that decide about memory, and one that reads what is read behind them; and the nodes behind them.

    Those are updates of parameters, mostly. They follow the last node that is no loop over elements, so what is made
    there takes no memory of its own, see `static.graph.lifetimes.temporaries`.
    """
    last = max((i for i, node in enumerate(graph.nodes) if runs_alone(node)), default=-1)
    behind = graph.nodes[last + 1 :]
    made = {v.key for node in behind for v in node.outputs}
    read = {v.key: v for node in behind for v in node.values if v.key not in made}
    number = 1 + max(node.id for node in graph.nodes)  # what is computed again takes numbers behind it
    end = Node(number, None, tuple(read.values()), {}, (), ("", 0, ""))
    return Graph(graph.inputs, [*graph.nodes[: last + 1], end], graph.outputs, graph.effects), behind


def _ways(graph: Graph, peak: int) -> Iterator[Windows]:
    """More and more to compute again behind a position, the cheapest first."""
    free = {value.key for value in (*graph.inputs, *graph.results)}
    number = {node.id: i for i, node in enumerate(graph.nodes)}
    uses = [[v for v in node.values if number[v.node.id] <= peak] for node in graph.nodes]
    size, cost = cache(nbytes), cache(cost_again)

    def windows(ends: list[int], price: float) -> Windows:
        """Where windows end, and what is computed again in each: nothing in the first of several."""
        kept, found = set(free), []
        for start, end in reversed(list(zip([peak + 1, *ends], ends))):
            used = {v.key: v for values in uses[start:end] for v in values}
            again: set[Key] = set()
            if len(ends) == 1 or start > peak + 1:
                cut = minimum_cut(used.values(), lambda v: 0.0 if v.key in kept else price * size(v), cost)
                kept.update(value.key for value in cut)
                again = _between(list(used.values()), kept)
            found.append((end, again))
        return found[::-1]

    divided = [_ends(graph, peak, count) for count in WINDOWS]
    for price in PRICES:
        for ends, count in zip(divided, WINDOWS):
            if len(ends) == count:
                yield windows(ends, price)


def _between(uses: list[Value], kept: set[Key]) -> set[Key]:
    """Keys of the values that are computed between kept values and uses."""
    found: set[Key] = set()
    while uses:
        value = uses.pop()
        if value.key not in kept and value.key not in found:
            found.add(value.key)
            uses += value.node.values
    return found


def _ends(graph: Graph, peak: int, count: int) -> list[int]:
    """Positions that divide what is alive at the peak into as many parts, by bytes, in the order of first uses."""
    alive = [life for life in lives(graph.nodes, graph.results).values() if life.start <= peak < life.end]
    first = sorted((next((p for p in life.uses if p > peak), life.end), life.nbytes) for life in alive)
    total, so_far, ends = sum(size for _, size in first), 0, list[int]()
    for position, size in first:
        if so_far >= total * (len(ends) + 1) / count and position > max([peak, *ends]):
            ends.append(position)
        so_far += size
    return [*ends, len(graph.nodes)]


def _peak(nodes: Sequence[Node], graph: Graph) -> tuple[int, int]:
    """The position behind which most memory is in use, and how much that is."""
    used = usage(len(nodes), temporaries(nodes, graph.results))
    position = max(range(len(used)), key=used.__getitem__, default=0)
    return position, used[position] if used else 0


def _told(node: Node) -> Repeated:
    file, line, _ = node.source
    return Repeated(f"{node.name} at {file}:{line}", sum(map(nbytes, node.outputs)), nanoseconds(node))


def kept_within(graph: Graph, free: set[Key], uses: list[Value], budget: int | None = None) -> list[Value]:
    """The values from which `uses` follow that take least memory, in program order; what costs a load is repeated.

    With a budget, bytes have the least price at which they keep to it. Where many layers have the same price, only as
    many of them as it takes pay it, from the first on.

    Parameters
    ----------
    free : keys of the values that exist anyway.
    budget : how many bytes the others may take, for the sizes of the traced call.

    Raises
    ------
    ArgumentError : the budget is less than what cannot be computed again.
    """

    def keeps(cut: list[Value]) -> int:
        return sum(nbytes(value) for value in cut if value.key not in free)

    cut = _minimum_cut(graph, free, uses, None)
    if budget is None or keeps(cut) <= budget:
        return cut
    count, last = len(graph.nodes), len(PRICES) - 1

    def at(index: int, many: int = count) -> list[Value]:
        """The cut if what the first nodes make has a price, and the rest the one before."""
        prices = [PRICES[index]] * many + [PRICES[max(index - 1, 0)]] * (count - many)
        return _minimum_cut(graph, free, uses, prices)

    if (least := keeps(at(last))) > budget:
        raise ArgumentError(
            f"memory_budget is {budget} bytes, but {least} have to be kept for the backward pass: what loops give, "
            "and state that is overwritten, is not computed again"
        )
    index = bisect_left(range(last), True, key=lambda i: keeps(at(i)) <= budget)
    return at(index, bisect_left(range(count), True, key=lambda many: keeps(at(index, many)) <= budget))


def _minimum_cut(graph: Graph, free: set[Key], uses: list[Value], prices: list[float] | None) -> list[Value]:
    """The values to keep if a byte costs what `prices` say; None: if only what costs about a load is computed again.

    Parameters
    ----------
    prices : nanoseconds, per node of the graph that makes the value.
    """
    if prices is None:
        return minimum_cut(
            uses, lambda v: 0 if v.key in free else nbytes(v), lambda node: 0 if _is_cheap(node) else None
        )
    price = {node.id: each for node, each in zip(graph.nodes, prices, strict=True)}
    return minimum_cut(uses, lambda v: 0 if v.key in free else price[v.node.id] * nbytes(v), _cost)


def _cost(node: Node) -> float | None:
    """The cost of computing a node again; None if it cannot be: a loop may need other room than at first."""
    return None if node.op is not None and node.op.kind == "control" else cost_again(node)


def _is_cheap(node: Node) -> bool:
    """Whether a node may be computed again: a view, a constant, or an elementwise op that costs about a load."""
    if node.op is None or node.op.kind in ("act", "control") or node.op.costly:
        return False
    return node.op.kind in ("elementwise", "view") or not node.operands


__all__ = ["Rematerialiser", "Repeated", "kept_within", "rematerialise"]
