"""Random writes to slices and places of two arrays that read each other: state, and what a loop carries."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.helpers.proofs import first
from tests.static.lowering.test_in_place import Both, floats


def draw(seed):
    """A list of writes and reads, as numbers."""
    choose = random.Random(seed)
    sizes = 11, 2, 2, 3, 3, 2, 3
    return [tuple(choose.randrange(n) for n in sizes) for _ in range(choose.randint(2, 7))]


def run(tw, steps, arrays, x, i):
    """Write to the arrays, in place; what was read."""
    found = [x.sum()]
    for kind, to, of, p, q, turned, scaled in steps:
        a, b = arrays[to], arrays[of]
        part = tw.transpose(b[:5], 0, 1)[q : q + 3] if turned else b[q : q + 3]
        part = part if scaled else tw.tanh(part) * 0.5
        if kind == 0:
            a[p : p + 3] = part
        elif kind == 1:
            a[p : p + 3] *= x
        elif kind == 2:
            a.index_copy_(0, i, part)
        elif kind == 3:
            a.index_add_(0, i, part)
        elif kind == 4:
            found.append(a.sum(turned))
        elif kind == 5:
            found.append(tw.mm(a, tw.transpose(b, 0, 1)))
        elif kind == 6:
            a[:, p] = b[:, q] * 2
        elif kind == 7:
            found.append(tw.cat([a[p:], b[:q]], 0) + 1)
        elif kind == 8:
            a[i] = x
        elif kind == 9:
            found.append(tw.index_select(a, 0, i) * x)
        else:
            a[p + 1 : p + 4] = a[p : p + 3]
    return tuple(found)


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("part", first(1, range(4)))
def test_random_writes(part, carried):
    for seed in range(part * 40, part * 40 + 40):
        steps = draw(seed)

        def state(tw, a, b, x, i, steps=steps):
            return run(tw, steps, [a, b], x, i)

        def loop(tw, a, b, x, i, steps=steps):
            def body(_, carried):
                arrays = [tw.clone(y) for y in carried]
                run(tw, steps, arrays, x, i)
                return tuple(arrays)

            return tw.fori_loop(0, 3, body, (a * 1, b * 1))

        both = Both(loop if carried else state, floats(7, 5), floats(7, 5))
        for _ in range(2):
            both.check(floats(5), np.random.default_rng(seed).integers(0, 7, 3))
