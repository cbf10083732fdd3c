"""Layered drawing of acyclic graphs: a rank for each vertex, an order in each rank, a place for each.

The steps are those of Sugiyama, Tagawa and Toda: longest paths give ranks; long edges get a bend in every rank that
they cross, one chain for all readers of a value; orders are improved by barycentres in sweeps up and down, the one with
the fewest crossings is kept. Places minimise, rank by rank, the weighted squares of the horizontal steps of edges under
the least distances of neighbours: an isotonic regression, which pooling adjacent violators solves in linear time.

References
----------
K. Sugiyama, S. Tagawa, M. Toda: Methods for visual understanding of hierarchical system structures. IEEE Trans. SMC 11
(1981). W. Barth, M. Jünger, P. Mutzel: Simple and efficient bilayer cross counting. GD 2002. M. J. Best,
N. Chakravarti: Active set algorithms for isotonic regression. Math. Programming 47 (1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_SWEEPS = 12
_SPACING, _BEND_SPACING = 18.0, 9.0
_GAP, _BORDER_GAP, _CROWDED = 30.0, 20.0, 2.0


class Wire(NamedTuple):
    """A value and its readers.

    Attributes
    ----------
    source, at : vertex that makes it, and where it leaves: from the vertex's middle to the right.
    targets : pairs of a vertex, and where it enters.
    """

    source: int
    at: float
    targets: list[tuple[int, float]]


class Stop(NamedTuple):
    """A vertical piece of a route: at x, from `top` to `bottom`."""

    x: float
    top: float
    bottom: float


class Placed(NamedTuple):
    """The result of `arrange`.

    Attributes
    ----------
    width, height : of everything.
    middles, tops : of the vertices.
    routes : per wire its branches, each a reader and a list of stops; those after the first begin on an earlier one.
    """

    width: float
    height: float
    middles: list[float]
    tops: list[float]
    routes: list[list[tuple[int, list[Stop]]]]


def arrange(sizes: Sequence[tuple[float, float]], wires: Sequence[Wire], entries: int = 0, exits: int = 0) -> Placed:
    """Place vertices that are given in a topological order.

    Parameters
    ----------
    sizes : width and height of each.
    entries, exits : how many at the beginning lie in a rank of their own at the top, how many at the end at the bottom.
    """
    return _WiredVertices(sizes, wires, entries, exits).placed()


class _WiredVertices:
    """Vertices, and behind them the bends of long wires."""

    def __init__(self, sizes: Sequence[tuple[float, float]], wires: Sequence[Wire], entries: int, exits: int) -> None:
        self.count, self.wires = len(sizes), wires
        self.entries, self.exits = entries, exits
        self.sizes = list(sizes)
        self.ranks = self._ranked()
        self.chains: list[list[int]] = []
        #: Per vertex pairs of neighbour, where it meets the neighbour, where it meets the vertex, and a weight.
        self.above: list[list[tuple[int, float, float, float]]] = [[] for _ in sizes]
        self.below: list[list[tuple[int, float, float, float]]] = [[] for _ in sizes]
        for wire in wires:
            self._chain(wire)
        self.rows: list[list[int]] = [[] for _ in range(max(self.ranks, default=-1) + 1)]
        for vertex, rank in enumerate(self.ranks):
            self.rows[rank].append(vertex)

    def _ranked(self) -> list[int]:
        """The longest path to each vertex; what only feeds one reader moves down to it."""
        readers: list[list[int]] = [[] for _ in range(self.count)]
        feeds: list[list[int]] = [[] for _ in range(self.count)]
        for wire in self.wires:
            for target, _ in wire.targets:
                readers[wire.source].append(target)
                feeds[target].append(wire.source)
        least = 1 if self.entries else 0
        ranks = [0 if v < self.entries else least for v in range(self.count)]
        for v in range(self.entries, self.count):
            ranks[v] = max([least, *(ranks[u] + 1 for u in feeds[v])])
        last = self.count - self.exits
        ranks[last:] = [max((rank + 1 for rank in ranks[:last]), default=1)] * self.exits
        loose = [not feeds[v] for v in range(self.count)]
        for v in range(self.entries, last):
            loose[v] = loose[v] or all(loose[u] and u >= self.entries for u in feeds[v])
        for v in range(last - 1, self.entries - 1, -1):
            if readers[v] and loose[v]:
                ranks[v] = min(ranks[r] for r in readers[v]) - 1
        return ranks

    def _chain(self, wire: Wire) -> None:
        """Give a wire a bend in each rank between its source and its farthest reader."""
        start = self.ranks[wire.source]
        chain = [wire.source]
        for rank in range(start + 1, max((self.ranks[t] for t, _ in wire.targets), default=start)):
            bend = len(self.sizes)
            self.sizes.append((0.0, 0.0))
            self.ranks.append(rank)
            self.above.append([])
            self.below.append([])
            self._link(chain[-1], bend, wire.at if len(chain) == 1 else 0.0, 0.0, 2.0 if len(chain) == 1 else 8.0)
            chain.append(bend)
        for target, at in wire.targets:
            near = self.ranks[target] - start - 1
            self._link(chain[near], target, 0.0 if near else wire.at, at, 2.0 if near else 1.0)
        self.chains.append(chain)

    def _link(self, upper: int, lower: int, out: float, into: float, weight: float) -> None:
        self.below[upper].append((lower, into, out, weight))
        self.above[lower].append((upper, out, into, weight))

    # ------------------------------------------------------------------ order

    def _order(self) -> None:
        """Sweep until the crossings no longer become fewer."""
        best = [list(row) for row in self.rows]
        fewest = self._crossings()
        stale = 0
        for sweep in range(_SWEEPS if len(self.sizes) < 20_000 else 3):
            down = sweep % 2 == 0
            rows = self.rows[1:] if down else self.rows[-2::-1]
            sides = self.above if down else self.below
            place = {v: i for row in self.rows for i, v in enumerate(row)}
            for row in rows:
                keys = {v: self._barycentre(sides[v], place, place[v]) for v in row}
                row.sort(key=keys.__getitem__)
                place.update((v, i) for i, v in enumerate(row))
            crossings = self._crossings()
            stale = 0 if crossings < fewest else stale + 1
            if crossings < fewest:
                fewest, best = crossings, [list(row) for row in self.rows]
            if not fewest or stale == 4:
                break
        self.rows = best

    def _barycentre(self, side: list[tuple[int, float, float, float]], place: dict[int, int], own: int) -> float:
        if not side:
            return float(own)
        return sum(place[u] + self._fraction(u, at) for u, at, _, _ in side) / len(side)

    def _fraction(self, vertex: int, at: float) -> float:
        return at / (self.sizes[vertex][0] + 1.0)

    def _crossings(self) -> int:
        """Pairs of edges that cross, counted between neighbouring ranks with a tree of partial sums."""
        total = 0
        for upper, lower in zip(self.rows, self.rows[1:], strict=False):
            place = {v: i for i, v in enumerate(lower)}
            links = sorted((i, out, place[w], into) for i, v in enumerate(upper) for w, into, out, _ in self.below[v])
            ends = [(end, into) for _, _, end, into in links]
            index = {end: i for i, end in enumerate(sorted(set(ends)))}
            tree = [0] * (len(index) + 1)
            for seen, end in enumerate(ends):
                before, i = 0, index[end] + 1
                while i:
                    before += tree[i]
                    i &= i - 1
                total += seen - before
                i = index[end] + 1
                while i <= len(index):
                    tree[i] += 1
                    i += i & -i
        return total

    # ------------------------------------------------------------------ places

    def _distance(self, left: int, right: int) -> float:
        spacing = _SPACING if left < self.count and right < self.count else _BEND_SPACING
        return self.sizes[left][0] / 2 + self.sizes[right][0] / 2 + spacing

    def _middles(self) -> list[float]:
        middles = [0.0] * len(self.sizes)
        for row in self.rows:
            x = 0.0
            for i, v in enumerate(row):
                x += self._distance(row[i - 1], v) if i else 0.0
                middles[v] = x
            for v in row:
                middles[v] -= x / 2
        sweeps = 16 if len(self.sizes) < 20_000 else 4
        for sweep in range(sweeps):
            down = sweep % 2 == 0
            both = sweep >= sweeps - 4
            for row in self.rows if down else reversed(self.rows):
                self._place(row, middles, [self.above, self.below] if both else [self.above if down else self.below])
        return middles

    def _place(
        self, row: list[int], middles: list[float], sides: list[list[list[tuple[int, float, float, float]]]]
    ) -> None:
        """Move the vertices of a rank towards their neighbours, as far as their distances allow."""
        shift = 0.0
        blocks: list[list[float]] = []  # weight, mean, number of vertices
        shifts = []
        for i, v in enumerate(row):
            shift += self._distance(row[i - 1], v) if i else 0.0
            shifts.append(shift)
            weight, total = 0.01, 0.01 * middles[v]
            for side in sides:
                for u, at, own, w in side[v]:
                    weight += w
                    total += w * (middles[u] + at - own)
            block = [weight, total / weight - shift, 1]
            while blocks and blocks[-1][1] >= block[1]:
                other = blocks.pop()
                both = other[0] + block[0]
                block = [both, (other[0] * other[1] + block[0] * block[1]) / both, other[2] + block[2]]
            blocks.append(block)
        i = 0
        for _, mean, size in blocks:
            for _ in range(int(size)):
                middles[row[i]] = mean + shifts[i]
                i += 1

    def placed(self) -> Placed:
        """Do all steps."""
        self._order()
        middles = self._middles()
        real = range(len(self.sizes))
        left = min((middles[v] - self.sizes[v][0] / 2 for v in real), default=0.0)
        right = max((middles[v] + self.sizes[v][0] / 2 for v in real), default=0.0)
        middles = [x - left for x in middles]
        top, tops, bands = 0.0, [0.0] * self.count, []
        for rank, row in enumerate(self.rows):
            height = max(self.sizes[v][1] for v in row) if row else 0.0
            for v in row:
                if v < self.count:
                    tops[v] = top + (height - self.sizes[v][1]) / 2
            bands.append((top, top + height))
            last = rank == len(self.rows) - 1
            crowd = sum(1 for v in row for w, into, out, _ in self.below[v]
                        if abs(middles[v] + out - middles[w] - into) > 40)  # fmt: skip
            border = self.exits and rank == len(self.rows) - 2
            top += height + (0.0 if last else (_BORDER_GAP if border else _GAP) + _CROWDED * min(crowd, 20))
        routes = [self._route(wire, chain, middles, tops, bands)
                  for wire, chain in zip(self.wires, self.chains, strict=True)]  # fmt: skip
        return Placed(right - left, top, middles[: self.count], tops, routes)

    def _route(
        self, wire: Wire, chain: list[int], middles: list[float], tops: list[float], bands: list[tuple[float, float]]
    ) -> list[tuple[int, list[Stop]]]:
        source, start = wire.source, self.ranks[wire.source]
        stops = [Stop(middles[source] + wire.at, tops[source] + self.sizes[source][1], bands[start][1])]
        stops += [Stop(middles[bend], *bands[self.ranks[bend]]) for bend in chain[1:]]
        routes: list[tuple[int, list[Stop]]] = []
        for target, at in sorted(wire.targets, key=lambda pair: -self.ranks[pair[0]]):
            near = self.ranks[target] - start - 1
            end = Stop(middles[target] + at, bands[self.ranks[target]][0], tops[target])
            joint = stops[near]
            branch = [Stop(joint.x, joint.bottom, joint.bottom)] if routes else stops[: near + 1]
            routes.append((target, [*branch, end]))
        return routes
