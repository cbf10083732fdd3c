"""Common divisors beside those of Python's integers."""

import math

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits

LEAST = -(2**63)
EDGES = [0, 1, -1, 2, 3, 6, 12, 2**32, 3 << 40, 2**62, -(2**62), 2**63 - 1, LEAST + 1, LEAST]
RNG = np.random.default_rng(3)
PAIRS = {
    "edges": [(a, b) for a in EDGES for b in EDGES],
    "small": RNG.integers(-50, 50, (1003, 2)).tolist(),
    "large": RNG.integers(LEAST, 2**63 - 1, (257, 2)).tolist(),
    "with twos in common": (RNG.integers(-(2**30), 2**30, (300, 2)) << RNG.integers(0, 32, (300, 1))).tolist(),
}


@pytest.mark.parametrize("pairs", PAIRS)
def test_divisors_are_those_of_python(pairs):
    """2^63, the divisor of -2^63 and 0, wraps to -2^63."""
    a, b = (np.array(x, np.int64) for x in zip(*PAIRS[pairs], strict=True))
    expected = np.array([math.gcd(x, y) for x, y in PAIRS[pairs]], np.uint64).astype(np.int64)
    assert_all_same_bits([dynamic.gcd(a, b)], [expected], pairs)
    assert_all_same_bits([static.function(static.gcd)(a, b)], [expected], pairs)
    if pairs == "small":
        multiples = np.array([math.lcm(x, y) for x, y in PAIRS[pairs]])
        assert_all_same_bits([dynamic.lcm(a, b)], [multiples], pairs)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_a_tensor_without_dimensions_does_not_widen_the_dtype(engine):
    a, b = engine.tensor([4, 6], dtype=engine.int8), engine.tensor(10)
    assert (engine.gcd(a, b).dtype, engine.gcd(b, a).tolist()) == (engine.int8, [2, 2])
    assert (engine.lcm(b, a).dtype, engine.lcm(a, b).tolist()) == (engine.int8, [20, 30])
    y = engine.block_diag(a, b)
    assert (y.dtype, y.tolist()) == (engine.int8, [[4, 6, 0], [0, 0, 10]])
    assert engine.block_diag(a, engine.tensor(0.5)).dtype == engine.float32
    assert engine.block_diag(a, engine.tensor([10])).dtype == engine.int64
