"""The cyclic garbage collector and large tapes: full collections are put off while they find only live nodes.

A tape has no cycles and reference counts free it, but Python's collector visits every live object whenever their number
has grown by a quarter. On a tape of 1e6 nodes this costs more than making the nodes (benchmarks/test_graph_size.py).
So when full collections free nothing while the tape grows, the next is put off: the third of `gc.get_threshold()`
grows to 1000 at most, and is given back at the first full collection that frees something or meets few new nodes.
Young garbage is collected as ever, and thresholds that a program sets itself are left alone.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

from common.tensor.node import next_number

#: New nodes since the last full collection from which on a tape counts as growing.
MANY = 10_000
LONGEST = 1000


class _Postponement:
    """Called by the collector; `given` is the threshold that the program had, `put` the one that stands now."""

    def __init__(self) -> None:
        self.number = 0
        self.given = self.put = -1

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        if phase != "stop" or info["generation"] < 2:
            return
        young, middle, old = gc.get_threshold()
        number, before = next_number(), self.number
        self.number = number
        if old != self.put:  # the program's own
            self.given = old
        if info["collected"] or number - before < MANY:
            self.put = self.given
        elif old:
            self.put = max(old, min(10 * old, LONGEST))
        else:
            return
        if self.put != old:
            gc.set_threshold(young, middle, self.put)


postponement = _Postponement()


def install() -> None:
    """Have the collector ask; once is enough."""
    if postponement not in gc.callbacks:
        gc.callbacks.append(postponement)
