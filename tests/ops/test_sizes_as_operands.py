"""A size of a tensor as an operand: in a traced function, where it is symbolic, as in the eager engine."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_same_bits

FUNCTIONS = {
    "gcd": lambda tw, x, n: tw.gcd(x, n), "lcm": lambda tw, x, n: tw.lcm(x, n), "remainder": lambda tw, x, n: x % n,
    "floor_divide": lambda tw, x, n: n // x, "and": lambda tw, x, n: x & n, "xor": lambda tw, x, n: x ^ n,
    "left shift": lambda tw, x, n: x << n, "right shift": lambda tw, x, n: n >> x, "pow": lambda tw, x, n: x**n,
    "igamma": lambda tw, x, n: tw.igamma(x.float(), n), "zeta": lambda tw, x, n: tw.special.zeta(x.float() + 1, n),
    "scatter": lambda tw, x, n: x.scatter(0, tw.tensor([0]), n), "where": lambda tw, x, n: tw.where(x > 2, x, n),
    "scatter, value": lambda tw, x, n: x.scatter(0, tw.tensor([0]), value=n),
    "masked_fill": lambda tw, x, n: x.masked_fill(x > 2, n), "index_fill": lambda tw, x, n: x.index_fill(
        0, tw.tensor([1]), n
    ), "searchsorted": lambda tw, x, n: tw.searchsorted(x, n), "full": lambda tw, x, n: tw.full_like(x, n),
    "lerp": lambda tw, x, n: tw.lerp(x.float(), x.float() * 2, n), "fmod": lambda tw, x, n: tw.fmod(x, n),
}  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_size_is_a_number(function):
    traced = static.function(lambda x: function(static, x, x.shape[0]))
    for x in (np.array([1, 2, 3, 6]), np.array([4, 5, 6, 9, 12, 1])):
        assert_same_bits(traced(x).numpy(), function(dynamic, dynamic.tensor(x), len(x)).numpy(), "a size")
    assert len(traced.traces) == 1


#: Functions of which Python has to know a number: a trace relies on the size that it is given.
DECIDED = {
    "polygamma": lambda tw, x, n: tw.polygamma(n, x), "matrix_power": lambda tw, x, n: tw.linalg.matrix_power(x, n),
    "movedim": lambda tw, x, n: tw.movedim(x, 0, n - 2), "tensordot": lambda tw, x, n: tw.tensordot(x, x, n - 2),
    "norm": lambda tw, x, n: tw.linalg.matrix_norm(x, n - 1), "sum": lambda tw, x, n: x.sum(n - 2),
}  # fmt: skip


@pytest.mark.parametrize("function", DECIDED.values(), ids=DECIDED)
def test_a_size_that_python_decides_on_is_part_of_the_trace(function):
    traced = static.function(lambda x: function(static, x, x.shape[0]))
    for n in (3, 2, 3):
        x = np.arange(1.0, n * n + 1).reshape(n, n)
        assert_same_bits(traced(x).numpy(), function(dynamic, dynamic.tensor(x), n).numpy(), "a size")
    assert len(traced.traces) == 2
