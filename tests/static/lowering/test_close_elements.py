"""Columns of narrow matrices: read and written by vectors of all that lies in between, and nothing beyond."""

from __future__ import annotations

import numpy as np
import pytest

import common.ops.functional as F
import dynamic
import static as tw
from tests.bits import assert_all_same_bits
from tests.static.compare import assert_compiles, program_of

RNG = np.random.default_rng(0)


def floats(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


def product(p, q):
    """Of quaternions."""
    a, b, c, d = F.unbind(p, 1)
    e, f, g, h = F.unbind(q, 1)
    return F.stack(
        [a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g, a * g - b * h + c * e + d * f,
         a * h + b * g - c * f + d * e], -1,
    )  # fmt: skip


def cross(x, y):
    return F.stack([x[:, i] * y[:, j] - x[:, j] * y[:, i] for i, j in ((1, 2), (2, 0), (0, 1))], 1)


PROGRAMS = {
    "quaternions": (4, lambda x, y: product(x, product(x, y))),
    "cross": (3, lambda x, y: cross(x, y) * 2),
    "pairs": (2, lambda x, y: F.stack([x[:, 0] * y[:, 1], x[:, 1] - y[:, 0]], 1)),
    "one of eight": (8, lambda x, y: F.tanh(x[:, 7]) + y[:, 0]),
    "one of nine": (9, lambda x, y: F.tanh(x[:, 8]) + y[:, 1]),
    "normalised": (4, lambda x, y: (lambda r: r[:, 0] / F.sqrt((r * r).sum(1)) + r[:, 3])(x * y)),
    "reversed rows": (20, lambda x, y: F.flip(x, (0, 1)) * y - x),
    "reversed columns": (3, lambda x, y: F.flip(x, (0,))[:, 1] * y[:, 1] + F.tanh(F.flip(y, (0,)))[:, 2]),
    "every third": (1, lambda x, y: x[::3, 0] * y[::3, 0] + x[::3, 0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_unfused_and_interpreted_runs_have_equal_bits_at_all_sizes(name):
    columns, program = PROGRAMS[name]

    def whole(x, y):
        z, pullback = tw.vjp(program, x, y)
        return z, *pullback(z)

    assert_compiles(whole, *[(floats(n, columns), floats(n, columns)) for n in (40, 1, 2, 15, 16, 17, 31, 33, 500, 0)])
    compiled = assert_compiles(whole, (floats(40, columns, dtype=np.float64), floats(40, columns, dtype=np.float64)))
    assert program_of(compiled)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8", "bool", "float64"])
def test_all_dtypes_and_both_engines_agree(dtype):
    def program(tw, x):
        return tw.stack([x[:, 2] * x[:, 0], x[:, 1], x[:, 0] | x[:, 1] if x.dtype.kind != "f" else -x[:, 2]], 1)

    x = (RNG.normal(size=(75, 3)) * 3).astype(dtype)
    found = tw.function(lambda x: program(tw, x))(x)
    assert_all_same_bits([found], [program(dynamic, dynamic.tensor(x))], dtype)


def test_columns_of_wider_matrices_are_another_form():
    f = tw.function(lambda x: x[:, 1] * 2 + x[:, 0])
    for columns in (3, 5, 8, 40, 2):
        x = floats(50, columns)
        assert_all_same_bits([f(x)], [x[:, 1] * np.float32(2) + x[:, 0]], f"{columns}")
    assert len(f.traces) == 1
    assert "== 3:" in f.source


def test_distances_that_the_program_says_have_a_form_too():
    f = tw.function(lambda x: tw.nn.functional.pixel_unshuffle(x, 2))
    for size in (40, 6, 34, 70):
        x = floats(2, 3, size, size)
        eager = dynamic.nn.functional.pixel_unshuffle(dynamic.tensor(x), 2)
        assert_all_same_bits([f(x)], [eager], f"{size}")
    assert len(f.traces) == 1
    assert "c * 2]" in f.source


def test_reversed_elements_are_turned_round_in_vectors():
    f = tw.function(lambda x: F.flip(x, (0,)) + x)
    for n in (50, 3, 33, 16):
        x = floats(n)
        assert_all_same_bits([f(x)], [x[::-1] + x], f"{n}")
    assert len(f.traces) == 1
    assert "== -1:" in f.source
