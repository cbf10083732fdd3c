"""Sizes that guards keep equal: one name for each, and the same value as before."""

import random

import pytest

from common.core.polynomials import evaluate, solve
from common.core.sizes import Dim, DimScope, same


def _scope() -> DimScope:
    return DimScope(lambda dim: dim, lambda dim: dim)


def test_sizes_that_differ_by_a_number_are_one():
    scope = _scope()
    n, m = scope.input(0, 0, 10), scope.input(1, 0, 9)
    assert not same(n - 1, m)
    assert n - 1 == m
    assert same(n - 1, m)
    assert same(n, m + 1)
    assert same((n - 1) * n, m * (m + 1))
    assert not same(n, m)


def test_what_no_dimension_is_is_left_alone():
    scope = _scope()
    n, m, k = (scope.input(i, 0, size) for i, size in enumerate((8, 4, 2)))
    assert n == m * k
    assert same(n, m * k)
    assert n + m * m == 6 * m
    assert m // 2 == k  # the quotient holds m, so k is named by it
    assert same(m // 2, k)
    assert solve((m - m // 2).terms) is None
    assert solve((n * n - m * n).terms) is None


@pytest.mark.parametrize("seed", range(20))
def test_random_guards_change_no_value(seed):
    draw = random.Random(seed)
    sizes = {("in", i, 0): draw.randint(2, 9) for i in range(5)}
    scope = _scope()
    dims = [scope.input(i, 0, value) for (_, i, _), value in sizes.items()]

    def size() -> Dim | int:
        made = draw.choice(dims) * draw.choice((1, 1, 1, 2, -1)) + draw.randint(-2, 2)
        other = draw.choice(dims)
        return draw.choice((made, made + other, made * other, made - other, made // draw.randint(2, 3)))

    for _ in range(12):
        a, b = size(), size()
        a, b = (x if isinstance(x, Dim) else dims[0] + x for x in (a, b))
        b = b + (a.hint - b.hint)
        assert a == b  # the guard
        for x in (a, b, size()):
            if isinstance(x, Dim):
                assert evaluate(scope.canonical(x.terms), sizes) == x.hint == evaluate(x.terms, sizes)
