"""Random programs that read and write rows of tables at indices: both engines, fused and not, one thread and two."""

from __future__ import annotations

import random

import numpy as np
import pytest

import common.ops.functional as F
import static
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import first
from tests.parity.engines import Derivatives

READS = {
    "index_select": lambda t, i, j: F.index_select(t, 0, i),
    "getitem": lambda t, i, j: t[j],
    "gather": lambda t, i, j: F.gather(t, 0, each(i, t.shape[1])),
    "columns": lambda t, i, j: F.transpose(F.index_select(F.transpose(t, 0, 1), 1, i), 0, 1),
    "take": lambda t, i, j: F.take(t, each(j, t.shape[1])),
    "elements": lambda t, i, j: F.gather(t, 0, each(i, t.shape[1]) * 1),
    "across": lambda t, i, j: F.gather(t[j], 1, each(i, t.shape[1]) % t.shape[1]),
}
WRITES = {
    "index_add": lambda t, i, j, r: F.index_add(t, 0, i, r),
    "index_copy": lambda t, i, j, r: F.index_copy(t, 0, i, r),
    "scatter_add": lambda t, i, j, r: F.scatter_add(t, 0, each(i, t.shape[1]), r),
    "index_put": lambda t, i, j, r: F.index_put(t, (j,), r),
    "added": lambda t, i, j, r: F.index_put(t, (j,), r, accumulate=True),
    "into zeros": lambda t, i, j, r: F.index_add(F.zeros_like(t), 0, i, r) + t,
    "amax": lambda t, i, j, r: F.index_reduce(t, 0, i, r, "amax"),
    "prod": lambda t, i, j, r: F.index_reduce(t, 0, i, r, "prod"),
    "columns": lambda t, i, j, r: F.transpose(
        F.index_add(F.transpose(t, 0, 1), 1, i, F.transpose(r, 0, 1)), 0, 1
    ),
}  # fmt: skip
ROWS = {
    "mul": lambda r, s, w: r * s,
    "sub": lambda r, s, w: r - s * 2,
    "weight": lambda r, s, w: r * w,
    "of columns": lambda r, s, w: r - F.sum(s, 0),
    "of rows": lambda r, s, w: r + F.sum(s, 1, True).to(r.dtype),
    "tanh": lambda r, s, w: F.tanh(r),
    "softmax": lambda r, s, w: F.softmax(r, -1),
    "layer_norm": lambda r, s, w: F.layer_norm(r, r.shape[-1]),
}
FLOATS = ("tanh", "softmax", "layer_norm")
AMONG = {
    "index_add": lambda r, s, k: F.index_add(r, 0, k, s),
    "index_copy": lambda r, s, k: F.index_copy(r, 0, k, s),
    "index_select": lambda r, s, k: F.index_select(r, 0, k),
}
WAYS = {"read": READS, "write": WRITES, "rows": ROWS, "among": AMONG}


def each(i, width):
    """An index per row as one per element."""
    return F.expand(F.unsqueeze(i, 1), (i.shape[0], width))


def draw(seed, floats):
    """A program, as names and numbers."""
    choose = random.Random(seed)
    steps = []
    for _ in range(choose.randint(3, 9)):
        way = choose.choice(["read", "write", "write", "rows", "rows", "among"])
        names = [name for name in WAYS[way] if floats or name not in FLOATS]
        steps.append((way, choose.choice(names), choose.randrange(3), choose.randrange(3)))
    return steps


def run(steps, t, u, r, w, i, j, k):
    """The last tables and rows of a program."""
    tables, rows = [t, u], [r, r * 2]
    for way, name, a, b in steps:
        row, other = rows[-1 - a % len(rows)], rows[-1 - b % len(rows)]
        table = tables[-1 - b % len(tables)]
        if way == "read":
            rows.append(READS[name](table, i, j))
        elif way == "write":
            tables.append(WRITES[name](table, i, j, row))
        elif way == "among":
            rows.append(AMONG[name](row, other, k))
        else:
            rows.append(ROWS[name](row, other, w).to(r.dtype))
    return *tables[2:][-3:], rows[-1]


def arrays(seed, count, extent, width, dtype):
    """Two tables, rows, a weight, indices that repeat, indices that count from the end, and indices of the rows."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)

    def values(*shape):
        x = rng.normal(size=shape) if kind.kind == "f" else rng.integers(-4, 5, shape)
        return np.asarray(x, kind)

    kinds = [np.int64, np.int32][:: rng.choice([1, -1])]
    i = rng.integers(0, extent, count).astype(kinds[0])
    j = rng.integers(-extent, extent, count).astype(kinds[1])
    return [values(extent, width), values(extent, width), values(count, width), values(width), i, j,
            rng.integers(0, max(count, 1), count)]  # fmt: skip


@pytest.mark.parametrize("part", first(1, range(16)))
def test_both_engines_agree_on_random_reads_and_writes(part):
    for seed in range(part * 2, part * 2 + 2):
        dtype = ["float32", "float64", "float32", "int64", "int32"][seed % 5]
        steps = draw(seed, np.dtype(dtype).kind == "f")
        both = Derivatives(lambda *a, steps=steps: run(steps, *a), order=1)
        rng = np.random.default_rng(seed)
        for count, extent, width in ((7, 5, 24), (40, 3, 16), (0, 4, 33), (3, 50, 5)):
            given = arrays(seed, count, extent, width, dtype)
            if seed % 5 == 2 and count:  # -0.0, infinities and nan go the same ways
                given[2].flat[:4] = -0.0, np.inf, np.nan, -np.inf
            both.check(given, rng, f"{seed}: {steps}", interpreter=count == 7)


@pytest.mark.parametrize("part", first(1, range(6)))
def test_two_threads_add_in_the_order_of_one(part):
    for seed in range(part * 2, part * 2 + 2):
        steps = draw(seed, floats=True)

        def program(*a, steps=steps):
            def loss(*floats):
                return sum((y * y).sum() for y in run(steps, *floats, *a[4:]))

            return *run(steps, *a), *static.grad(loss, argnums=(0, 1, 2, 3))(*a[:4])

        compiled, given = static.function(program), arrays(seed, 3000, 70, 40, "float32")
        expected = compiled(*given)
        static.set_num_threads(2)
        try:
            assert_all_same_bits(compiled(*given), expected, f"{seed}: {steps}")
        finally:
            static.set_num_threads(1)
