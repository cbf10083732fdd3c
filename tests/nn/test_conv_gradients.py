"""nn.grad: gradients of convolutions are adjoint to the convolutions."""

import numpy as np
import pytest

import dynamic as tw
import static
from common.core.errors import ShapeError
from tests.bits import assert_all_same_bits

OPTIONS = [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2, "groups": 2}]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_gradients_of_convolutions(n, options):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((2, 4, *(7, 6, 5)[:n]))
    w = rng.standard_normal((6, 4 // options.get("groups", 1), *(3,) * n))
    found = []
    for engine in (tw, static):
        conv = getattr(engine.nn.functional, f"conv{n}d")
        to_input, to_weight = (getattr(engine.nn.grad, f"conv{n}d_{of}") for of in ("input", "weight"))
        y = conv(engine.tensor(x), engine.tensor(w), **options)
        g = engine.tensor(np.random.default_rng(9).standard_normal(tuple(y.shape)))
        gx = to_input(x.shape, engine.tensor(w), g, **options)
        gw = to_weight(engine.tensor(x), w.shape, g, **options)
        assert tuple(gx.shape) == x.shape
        product = float((y * g).sum())
        assert np.vdot(gx.numpy(), x) == pytest.approx(product, rel=1e-12)
        assert np.vdot(gw.numpy(), w) == pytest.approx(product, rel=1e-12)
        found.append([gx, gw])
    assert_all_same_bits(*found, "gradients of convolutions")


def test_sizes_that_do_not_fit():
    with pytest.raises(ShapeError):
        tw.nn.grad.conv2d_input((1, 2, 5, 5), tw.ones(2, 2, 3, 3), tw.ones(1, 2, 4, 4))
