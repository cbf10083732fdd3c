"""Exponentials so far below that they are +0, among others: exp, and softmax, whose operand is never above 0."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits

#: Per dtype: below the first the result is 0, from the second on it is a normal number.
ENDS = {"float32": (-104.0, -87.3), "float64": (-746.0, -708.3)}


@pytest.mark.parametrize("dtype", ENDS)
def test_far_below_the_result_is_zero(dtype):
    least, normal = ENDS[dtype]
    rng = np.random.default_rng(0)
    steps = [least * np.linspace(1, 3, 5000)[1:], rng.uniform(4 * least, 0, 2000), -(10.0 ** np.arange(3, 38))]
    x = np.concatenate([*steps, [-np.inf, -np.finfo(dtype).max, -0.0, normal]]).astype(dtype)
    rng.shuffle(x)
    beside = np.stack([np.zeros_like(x), x], 1)
    found = [dynamic.exp(dynamic.tensor(x)), dynamic.softmax(dynamic.tensor(beside), 1)]
    traced = static.function(lambda x, z: (static.exp(x), static.softmax(z, 1)))
    assert_all_same_bits(traced(x, beside), found, "both engines")
    exact, gone = np.exp(x.astype(np.float64)), x < least
    for y, expected in ((found[0].numpy(), exact), (found[1].numpy()[:, 1], exact / (1 + exact))):
        assert_all_same_bits([y[gone]], [np.zeros(int(gone.sum()), dtype)], "zeros are positive")
        rtol = 4 * np.finfo(dtype).eps
        np.testing.assert_allclose(y[x >= normal], expected[x >= normal], rtol)
        np.testing.assert_allclose(y, expected, rtol, 2 * float(np.finfo(dtype).smallest_subnormal))
