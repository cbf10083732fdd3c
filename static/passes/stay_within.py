"""Less memory than a budget: what costs least is computed again where it is needed, instead of kept until then.

What is alive where most memory is in use is needed behind that place at different times, in a gradient the last layer
first. The nodes behind it are divided into windows. Of what a window needs, a minimum cut decides what is kept until
then and what is computed again from that, by what a byte is worth; what is kept for a later window is there in the
earlier ones. A window computes each value at most once, right before its first use. With a low price of a byte this
repeats what costs a load, here and there; with a high one, whole segments of a network, from what lies between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from common.collecting import collecting_now
from common.errors import ArgumentError
from static.graph import Graph, Node, Value, rebuild
from static.lifetimes import Key, computed_again, lives, nbytes, temporaries, usage
from static.minimum_cut import minimum_cut
from static.recompute import cost_again, nanoseconds

PRICES = (0.05, 0.5, 2.0, 8.0, 32.0, 1e6)
"""Nanoseconds that a byte is worth: more than a load costs, a transcendental function, products of growing size."""
WINDOWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
ROUNDS, TRIES, PROGRESS = 4, 5, 0.95
"""How often the peak is lowered that is left, how often the target is, and what share each has to leave at most."""


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
        self.before = self.after = 0
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
        self.before = self.after = least = self._arena(graph)
        self.repeated = []
        if self.before <= self.budget:
            return graph
        for found in self._tried(graph, _peak(graph.nodes, graph)[1]):
            self.after = self._arena(found)
            if self.after <= self.budget:
                known = {node.id for node in graph.nodes}
                self.repeated = [_told(node) for node in found.nodes if node.id not in known]
                return found
            least = min(least, self.after)
        raise ArgumentError(
            f"memory_budget of {self._name} is {self.budget} bytes, but its temporaries take at least {least} bytes, "
            f"and {self.before} if nothing is computed again"
        )

    def _tried(self, graph: Graph, estimate: int) -> Iterator[Graph]:
        """Graphs that may keep to the budget: for less and less while they do not, then for all shares in turn.

        Estimates are not what lowering makes of them, so the least estimate need not be the least arena.
        """
        target = estimate * self.budget / self.before
        for _ in range(TRIES):
            found, reached = reduced(graph, target)
            yield found
            if reached > target:
                break
            target *= min(PROGRESS, self.budget / self.after)
        for share in SHARES:
            found, reached = reduced(graph, share * estimate)
            yield found
            if reached > share * estimate:
                break


def reduced(graph: Graph, target: float) -> tuple[Graph, int]:
    """A graph of which about `target` bytes are temporaries at the peak, or as few as can be had; and how many."""
    peak, most = _peak(graph.nodes, graph)
    for _ in range(ROUNDS):
        best, least = graph.nodes, most
        for nodes in _candidates(graph, peak) if most > target else ():
            needed = _peak(nodes, graph)[1]
            if needed < least:
                best, least = nodes, needed
            if needed <= target:
                break
        if best is graph.nodes:
            break
        before, graph = most, rebuild(graph, best, {})
        peak, most = _peak(graph.nodes, graph)
        if most > PROGRESS * before:
            break
    return graph, most


def _candidates(graph: Graph, peak: int) -> Iterator[list[Node]]:
    """Nodes of graphs in which more and more is computed again behind a position, the cheapest first."""
    free = {value.key for value in (*graph.inputs, *graph.results)}
    divided = [_ends(graph, peak, count) for count in WINDOWS]
    for price in PRICES:
        for ends, count in zip(divided, WINDOWS):
            if len(ends) == count:
                yield computed_again(graph, peak, _windows(graph, peak, ends, price, free))


def _windows(graph: Graph, peak: int, ends: list[int], price: float, free: set[Key]) -> list[tuple[int, set[Key]]]:
    """Where windows end, and what is computed again in each: nothing in the first of several."""
    number = {node.id: i for i, node in enumerate(graph.nodes)}
    kept, found = set(free), []
    for start, end in reversed(list(zip([peak + 1, *ends], ends))):
        nodes = graph.nodes[start:end]
        uses = {v.key: v for node in nodes for v in node.values if number[v.node.id] <= peak}
        again: set[Key] = set()
        if len(ends) == 1 or start > peak + 1:
            cut = minimum_cut(uses.values(), partial(_price, kept, price), cost_again)
            kept |= {value.key for value in cut}
            again = _between(list(uses.values()), kept)
        found.append((end, again))
    return found[::-1]


def _price(kept: set[Key], each: float, value: Value) -> float:
    """What keeping a value is worth if a byte costs so much."""
    return 0.0 if value.key in kept else each * nbytes(value)


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


__all__ = ["Repeated", "StayWithin", "reduced"]
