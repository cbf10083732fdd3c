"""Less memory than a budget: what costs least is computed again where it is needed, instead of kept until then.

What is alive where most memory is in use is needed behind that place at different times, in a gradient the last layer
first. The nodes behind it are divided into windows. Of what a window needs, a minimum cut decides what is kept until
then and what is computed again from that, by what a byte is worth; what is kept for a later window is there in the
earlier ones. A window computes each value at most once, right before its first use. With a low price of a byte this
repeats what costs a load, here and there; with a high one, whole segments of a network, from what lies between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from common.core.errors import ArgumentError
from common.core.garbage import collecting_now
from static.graph import Graph, Node, Value, rebuild
from static.graph.lifetimes import Key, computed_again, lives, nbytes, runs_alone, temporaries, usage
from static.graph.minimum_cut import minimum_cut
from static.graph.recompute_cost import cost_again, nanoseconds

PRICES = (0.05, 0.5, 2.0, 8.0, 32.0, 1e6)
"""Nanoseconds that a byte is worth: more than a load costs, a transcendental function, products of growing size."""
WINDOWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
ROUNDS, TRIES, PROGRESS = 4, 5, 0.95
"""How often the peak is lowered that is left, how often the target is, and what share each has to leave at most."""


Windows = list[tuple[int, set[Key]]]
"""Where windows end, and what is computed again in each."""


class Repeated(NamedTuple):
    """A node that is computed again: what it is and where it comes from, its bytes, and about how long it takes."""

    name: str
    nbytes: int
    nanoseconds: float


class StayWithin:
    """values that are needed much later -> computed again there, until temporaries take no more than a budget.

    Parameters
    ----------
    name : of the function, for the message.
    budget : bytes.
    arena : the size of the memory for temporaries that a graph needs, by lowering it.

    Attributes
    ----------
    before, after : size of that memory without the pass, and with it.
    repeated : what is computed again.

    References
    ----------
    Chen and others, Training deep nets with sublinear memory cost, 2016.
    """

    __name__ = "stay_within"

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
        """What each way needs at its peak, the cheapest way first."""
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
    """What is computed on the way from what is kept to uses."""
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


__all__ = ["Repeated", "StayWithin"]
