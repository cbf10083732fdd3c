"""A new op, as an author would add one: this one record, and both engines have it. Run by test_architecture.

``python -m tests.helpers.new_op SCALE``: the op's definition depends on SCALE, as if its author had edited it.
"""

import sys

import numpy as np

import dynamic
import static
from benchmarks.bits import difference
from common.compiler.primitives import absolute
from common.ops._define import elementwise

SCALE = float(sys.argv[1])

softsign = elementwise(
    "softsign", lambda x: x / (SCALE + absolute(x)), (lambda g, x: SCALE * g / dynamic.square(SCALE + dynamic.abs(x)),),
    doc="x / (s + |x|). d/dx = s / (s + |x|)^2.", domain="float",
)  # fmt: skip


def value_and_gradients(tw, x, cotangent):
    y, pullback = tw.vjp(softsign, x)
    return y, *pullback(cotangent)


if __name__ == "__main__":
    x, g = np.random.default_rng(0).standard_normal((2, 7, 5)).astype(np.float32)
    eager = [t.detach().numpy() for t in value_and_gradients(dynamic, x, g)]
    compiled = static.function(lambda x, g: value_and_gradients(static, x, g))(x, g)
    for ours, theirs in zip(eager, compiled, strict=True):
        assert difference(ours, theirs) is None
    np.testing.assert_allclose(eager[0], x / (SCALE + abs(x)), rtol=1e-6)
    np.testing.assert_allclose(eager[1], SCALE * g / (SCALE + abs(x)) ** 2, rtol=1e-5)
