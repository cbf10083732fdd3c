"""The cyclic garbage collector and large tapes: full collections are put off while they find only live nodes.

A tape has no cycles and reference counts free it, but Python's collector visits every live object whenever their number
has grown by a quarter. On a tape of 1e6 nodes this costs more than making them (benchmarks/gates/test_graph_size.py).
So when full collections free nothing while the tape grows, the next is put off: the third of `gc.get_threshold()`
grows to 1000 at most. It is given back with the first full collections that free something or meet few new nodes, and
with the first backward pass over few. Young garbage is collected as ever, and thresholds that a program sets itself are
left alone.

Nodes ask, at every so many of them: the collector is not made to call anything, since it would lose a Ctrl-C that
arrives while it works (`common.core.weak`).
"""

from __future__ import annotations

import gc

import numpy as np

#: New nodes per full collection from which on a tape counts as growing.
MANY = 10_000
LONGEST = 1000
#: Nodes between two looks.
EVERY = 2_000

#: Number of the node that looks next; the same for native code.
due = EVERY
due_word = np.array([due])
#: Whether a collection is put off.
waiting = False


class _Postponement:
    """The last thresholds seen: `given` is the program's, `put` the one that stands now."""

    def __init__(self) -> None:
        self.number = self.collections = self.collected = 0
        self.pass_before = 0
        self.given = self.put = -1

    def look(self, number: int) -> None:
        """Decide when the next full collection comes, at the node of a number."""
        global due, waiting
        due_word[0] = due = number + EVERY
        stats = gc.get_stats()[2]
        full, found = stats["collections"] - self.collections, stats["collected"] - self.collected
        if not full:
            return
        young, middle, old = gc.get_threshold()
        growth = (number - self.number) // full
        self.number, self.collections, self.collected = number, stats["collections"], stats["collected"]
        if old != self.put:  # the program's own
            self.given = old
        if found or growth < MANY:
            self.put = self.given
        elif old:
            self.put = max(old, min(10 * old, LONGEST))
        else:
            return
        waiting = self.put != self.given
        if self.put != old:
            gc.set_threshold(young, middle, self.put)

    def passed(self, number: int) -> None:
        """After a backward pass, when the next node has that number: if the pass was short, collect as before."""
        global waiting
        growth, self.pass_before = number - self.pass_before, number
        if growth >= MANY:
            return
        waiting = False
        young, middle, old = gc.get_threshold()
        if old == self.put:
            self.put = self.given
            gc.set_threshold(young, middle, self.given)


postponement = _Postponement()
look = postponement.look
