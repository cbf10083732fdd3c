"""Indices that all iterations of a loop read are checked once, before the loop.

A walk along the edges of a graph takes the same rows in each iteration: their indices are constants of the loop. Where
nothing in the body can fail before a check of such an index does, the first iteration would fail with it, and no other
one; so the check moves before the loop. It looks at nothing if there are no iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from static.graph import Node
from static.graph.regions import LoopParts, iterations
from static.lowering.groups import single
from static.lowering.ir.items import ArrayBuffer, Item
from static.lowering.ir.step import Step


def unvarying(node: Node) -> Sequence[int]:
    """The inputs of a loop's body that are constants, if their checks may move before the loop."""
    parts = LoopParts(node)
    return (
        () if iterations(node) is None else range(len(parts.body.inputs) - len(parts.constants), len(parts.body.inputs))
    )


def take_checks(steps: Sequence[Step], given: Sequence[ArrayBuffer]) -> tuple[list[Step], list[Step]]:
    """The steps that check one of the given arrays before any other step can fail, and all others."""
    taken: list[Step] = []
    for step in steps if given else ():
        if step.name == "check" and any(step.things[0] is buffer for buffer in given):
            taken.append(step)
        elif not step.source or len(step.errors) > 1:
            break
    return taken, [step for step in steps if step not in taken]


def made_before(check: Step, loop: Item) -> Step:
    """A check of the body as a step before the loop."""
    (item,), (buffer,) = check.groups[0].items, check.things
    assert isinstance(buffer, ArrayBuffer)
    assert buffer.position is not None
    parts = LoopParts(loop.node)
    place = parts.constants[buffer.position - (len(parts.body.inputs) - len(parts.constants))]
    index = loop.inputs[place]
    count, low, extent, used, tells = check.ints
    alone = Item(-1, item.node, "native", (), "check", np.dtype(np.int64), [], [], inputs=[index])
    ints = [count, low, extent, used * parts.length, tells]
    return replace(check, things=[index], ints=ints, groups=[single(alone)])
