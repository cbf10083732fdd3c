"""The short way of ops inside a mapped function: taken where it may be, with the bits of examples alone."""

import numpy as np
import pytest

import dynamic as tw
from common.transforms.batching.batch_trace import BatchTrace
from tests.bits import assert_same_bits

X = np.random.default_rng(3).normal(size=(3, 2, 4)).astype(np.float32)
X[0, 0, 0], X[1, 1, 1] = -0.0, np.inf


def curved(x):
    y = (x * 2 + 1).tanh() * x - x / 3
    return 1.5 / (y * y + 0.5) + (x**3).sum(0) + y.mean(1, keepdim=True)


def rooted(x):
    return (abs(x) ** 0.5).amax(1) * 3 + tw.where(x > 0, x, x * 0.1).sum(1)


def integral(x):
    return (x > 0).sum(0).float() * x[0] + x.long().sum(1).sum()


PROGRAMS = [curved, rooted, integral]
LOSSES = {f: (lambda x, f=f: f(x).sum()) for f in PROGRAMS}


@pytest.fixture
def counted(monkeypatch):
    """How often ops and nodes have gone the short way."""
    taken = {"shortly": 0, "pulled": 0}

    def counting(name):
        own = getattr(BatchTrace, name)

        def call(self, *given):
            found = own(self, *given)
            taken[name] += found is not None
            return found

        return call

    for name in taken:
        monkeypatch.setattr(BatchTrace, name, counting(name))
    return taken


@pytest.mark.quick
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients_are_those_of_examples_alone(f, counted):
    total = LOSSES[f]
    for g in (f, tw.func.grad(total), tw.func.grad(lambda x: tw.func.grad(total)(x).sum())):
        expected = np.stack([g(tw.tensor(x)).numpy() for x in X])
        assert_same_bits(tw.vmap(g)(tw.tensor(X)).numpy(), expected, f.__name__)
    assert counted["shortly"] > 10
    assert counted["pulled"] >= 3


def test_what_is_outside_is_recorded_and_watched():
    x = tw.tensor(X, requires_grad=True)
    y = tw.vmap(LOSSES[curved])(x)
    (g,) = tw.autograd.grad(y.sum(), x)
    leaf = tw.tensor(X)
    assert_same_bits(g.numpy(), tw.vmap(tw.func.grad(LOSSES[curved]))(leaf).numpy(), "gradient of the batch")
    slopes = tw.vmap(tw.func.grad(LOSSES[curved]))(x)
    (h,) = tw.autograd.grad(slopes.sum(), x)
    own = tw.func.grad(lambda r: tw.func.grad(LOSSES[curved])(r).sum())
    assert_same_bits(h.numpy(), np.stack([own(tw.tensor(r)).numpy() for r in X]), "second order")
    _, tangent = tw.func.jvp(tw.vmap(LOSSES[curved]), (leaf,), (leaf.sign(),))
    alone = [tw.func.jvp(LOSSES[curved], (r,), (r.sign(),))[1].numpy() for r in leaf]
    assert_same_bits(tangent.numpy(), np.stack(alone), "tangents")
    packed = []
    with tw.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t):
        tw.vmap(lambda r: (r * r).sum())(x)
    assert packed


def test_refusals_are_those_of_one_example():
    with pytest.raises(ValueError, match=r"\(2, 4\) and \(4, 2\)"):
        tw.vmap(lambda x: x + x.reshape(4, 2))(tw.tensor(X))
    with pytest.raises(IndexError):
        tw.vmap(lambda x: (x * 2).sum(2))(tw.tensor(X))
    kept = []
    tw.vmap(lambda x: kept.append(x * 2) or x)(tw.tensor(X))
    with pytest.raises(RuntimeError, match="escaped"):
        kept[0] * 3
