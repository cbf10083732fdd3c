"""Loops whose trips differ between the examples of one `vmap`, differentiated inside another one."""

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_same_bits

X = np.array([[0.15, 0.1], [1.15, 0.2], [0.3, 0.01]])
ONES = np.array([1.0, 2.0])

LOOPS = {
    "while_loop": lambda tw, x: tw.while_loop(lambda s: (s * s).sum() < 8, lambda s: s * 1.5 + x * 0.1, x).sum(),
    "several": lambda tw, x: tw.while_loop(
        lambda s: (s[0] * s[0]).sum() < 8, lambda s: (s[0] * 1.5 + s[1].sin() * 0.1, s[1] * 1.1, s[2]), (x, x * 2, x)
    )[1].sum(),
    "checkpoint": lambda tw, x: tw.while_loop(
        lambda s: (s * s).sum() < 8, lambda s: s * 1.5 + s.sin() * x * 0.1, x, checkpoint=2
    ).sum(),
    "fori_loop": lambda tw, x: tw.fori_loop(0, (x.sum() * 3).to(tw.int64), lambda i, s: s * 1.5 + x.sin(), x).sum(),
    "branches in it": lambda tw, x: tw.while_loop(
        lambda s: (s * s).sum() < 8, lambda s: tw.cond(s.sum() > 1, lambda s: s * 1.5 + x, lambda s: s * 2.0, s), x
    ).sum(),
    "in a scan": lambda tw, x: tw.scan(
        lambda c, r: (tw.while_loop(lambda s: s * s < 8, lambda s: s * 1.5 + r, c) * 0.1 + 0.01, c), x.sum(), x
    )[0],
}


def transforms(tw, f):
    """Derivatives of f of one example, each by a `vmap` inside."""
    func, ones = tw.func, tw.tensor(ONES)
    return {
        "hessian": func.hessian(f),
        "pull inside": lambda x: (lambda pull: func.vmap(lambda c: pull(c)[0])(ones))(func.vjp(f, x)[1]),
        "all inside": lambda x: func.vmap(lambda c: func.vjp(f, x)[1](c)[0])(ones),
        "jvp inside": lambda x: func.vmap(lambda c: func.jvp(f, (x,), (x * 0 + c,))[1])(ones),
        "three": lambda x: func.vmap(lambda d: func.vmap(lambda c: func.grad(f)(x * d) * c)(ones))(ones),
    }


@pytest.mark.parametrize("transform", transforms(dynamic, abs))
@pytest.mark.parametrize("loop", LOOPS)
def test_each_example_has_its_own_trips(loop, transform):
    found = {}
    for tw in (dynamic, static):
        g = transforms(tw, lambda x, tw=tw: LOOPS[loop](tw, x))[transform]
        found[tw] = tw.func.vmap(g)(tw.tensor(X)).numpy()
        if tw is dynamic:
            alone = np.stack([g(tw.tensor(x)).numpy() for x in X])
    np.testing.assert_allclose(found[dynamic], alone, rtol=1e-12)
    assert_same_bits(found[static], found[dynamic], f"{loop}, {transform}")


@pytest.mark.parametrize("tw", [dynamic, static])
def test_the_slope_of_a_power_is_the_power(tw):
    def slopes(x):
        f = lambda x: tw.while_loop(lambda s: s < 8, lambda s: s * 1.5, x)  # noqa: E731
        return tw.func.vmap(lambda c: tw.func.grad(f)(x) * c)(tw.tensor(ONES))

    expected = [1.5 ** np.ceil(np.log(8 / x) / np.log(1.5)) * ONES for x in X[:, 0]]
    np.testing.assert_allclose(tw.func.vmap(slopes)(tw.tensor(X[:, 0])).numpy(), expected, rtol=1e-12)
