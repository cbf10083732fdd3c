"""Random numbers: the published answers of Philox, the layout of elements, and the distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from common.kernels.arrays import philox
from tests.helpers.proofs import each
from tests.kernels.run import assert_same_bits, run

# Random123, tests/kat_vectors, philox4x32 10: counter, key, answer
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
NAMES = ["uniform", "normal"]
STATES = [(0, 0), (1, 5), (-1, 2**32 - 3), (2**63 - 1, 2**63 - 20), (-(2**63), -7)]
DTYPES = ["float32", "float64"]


def draw(name, seed, offset, n, dtype):
    out = np.full(n, 7, dtype)
    state = [np.array(seed, "int64"), np.array(offset, "int64")]
    assert run(getattr(philox, f"{name}_source")(dtype), [*state, out], [n]) == 0
    return out


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(counter, key, answer):
    words = [[np.array([int(word, 16)]) for word in text.split()] for text in (counter, key, answer)]
    assert list(philox.philox(tuple(words[0]), tuple(words[1]))) == words[2]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("seed", "offset"), STATES)
@each("n", [0, 1, 7, 8, 33, 1025])
def test_kernel_is_the_oracle(name, dtype, n, seed, offset):
    assert_same_bits(draw(name, seed, offset, n, dtype), getattr(philox, f"{name}_oracle")(seed, offset, n, dtype))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_element_depends_on_seed_and_place_only(name, dtype):
    whole = draw(name, 3, 100, 1000, dtype)
    for start, stop in ((0, 1), (1, 18), (499, 1000)):
        assert_same_bits(draw(name, 3, 100 + start, stop - start, dtype), whole[start:stop])
    assert (draw(name, 4, 100, 1000, dtype) != whole).mean() > 0.99


def test_words_and_bits_of_a_uniform_number():
    """Counter 0, key 0: w0 = 6627e8d5, w1 = e169c58d."""
    assert draw("uniform", 0, 0, 1, "float32")[0] == 0x6627E8 / 2**24
    assert draw("uniform", 0, 0, 1, "float64")[0] == (0x6627E8D5E169C58D >> 11) / 2**53


def test_words_of_a_normal_number():
    """Box and Muller's formula by the C library, to a few roundings."""
    u, v = ((0x6627E8D5E169C58D >> 11) + 1) / 2**53, (0xBC57AC4C9B00DBD8 >> 11) / 2**53
    expected = math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)
    assert abs(draw("normal", 0, 0, 1, "float64")[0] / expected - 1) < 1e-14
    assert abs(draw("normal", 0, 0, 1, "float32")[0] / expected - 1) < 1e-5


@pytest.mark.parametrize("dtype", DTYPES)
def test_distributions(dtype):
    """Moments and the distribution function, within five standard errors; the seed fixes the numbers."""
    n = 400_000
    u, z = (draw(name, 12345, 0, n, dtype).astype("float64") for name in NAMES)
    assert u.min() >= 0
    assert u.max() < 1
    assert abs(u.mean() - 0.5) < 5 * math.sqrt(1 / 12 / n)
    assert abs(u.var() - 1 / 12) < 5 * math.sqrt(1 / 180 / n)
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 5 / math.sqrt(n)
    assert abs(z.mean()) < 5 / math.sqrt(n)
    assert abs(z.var() - 1) < 5 * math.sqrt(2 / n)
    assert abs((z**3).mean()) < 5 * math.sqrt(15 / n)
    assert abs((z**4).mean() - 3) < 5 * math.sqrt(96 / n)
    for x in (-2, -0.5, 0.1, 1.5, 3):
        p = 0.5 * math.erfc(-x / math.sqrt(2))
        assert abs((z < x).mean() - p) < 5 * math.sqrt(p * (1 - p) / n)


def test_extremes_of_the_uniform_bits_give_finite_normal_numbers():
    least, most = np.array([0]), np.array([2**32 - 1])
    for dtype, limit in (("float32", 6.67), ("float64", 8.58)):
        for words in ((least, least, least, least), (most, most, most, most)):
            z = normal_of(words, dtype)
            assert np.isfinite(z).all()
            assert (np.abs(z) <= limit).all()


def normal_of(words, dtype):
    original = philox.philox
    try:
        philox.philox = lambda counter, key: words
        return philox.normal_oracle(0, 0, 1, dtype)
    finally:
        philox.philox = original
