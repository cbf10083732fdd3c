"""Lists of many tensors, and functions inside the library, are remembered as public functions are."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
from common.core.errors import ShapeError
from dynamic.eager import remembered
from tests.bits import assert_all_same_bits
from tests.dynamic.test_remembered import often
from tests.helpers.wrapped import wrap


@pytest.mark.quick
def test_many_tensors_are_told_apart():
    """Hundreds of tensors of a call, in runs of equal forms, and in every order of two forms."""
    rng = np.random.default_rng(11)
    for n in (20, 33, 100, 257):
        arrays = [rng.normal(size=(3, 2)).astype(np.float32) for _ in range(n)]
        tensors = [wrap(x, requires_grad=True) for x in arrays]
        for join in ("cat", "stack"):
            y = often(getattr(dynamic, join), tensors, 1)
            assert np.array_equal(y.detach().numpy(), getattr(np, join.replace("cat", "concatenate"))(arrays, 1))
            seed = wrap(rng.normal(size=y.shape).astype(np.float32))
            parts = [g.numpy() for g in dynamic.autograd.grad(y, tensors, seed)]
            assert np.array_equal(getattr(np, join.replace("cat", "concatenate"))(parts, 1), seed.numpy())
    one, two = (rng.normal(size=(n, 2)).astype(np.float32) for n in (1, 2))
    for _ in range(remembered.OFTEN + 2):
        for which in range(2**5):
            arrays = [two if which >> i & 1 else one for i in range(5)]
            assert np.array_equal(dynamic.cat([wrap(x) for x in arrays]).numpy(), np.concatenate(arrays))
    with pytest.raises(ShapeError):
        dynamic.stack([wrap(one)] * 99 + [wrap(two)])
    with pytest.raises(ShapeError):
        dynamic.cat([wrap(one)] * 99 + [wrap(two)], 1)


def test_functions_inside_the_library_are_remembered_too():
    """The density of classes is; what a distribution draws and tells is that of its words."""
    logits = wrap(np.array([[0.5, -1.0, 2.0], [0.0, 0.0, 1.0]], np.float32), requires_grad=True)
    shares = np.exp(logits.detach().numpy().astype(np.float64))
    shares /= shares.sum(1, keepdims=True)
    for _ in range(remembered.OFTEN + 2):
        for value in (np.array([2, 1]), np.array([[0, 1], [2, 2], [1, 0]])):
            classes = dynamic.distributions.Categorical(logits=logits)
            told = classes.log_prob(wrap(value))
            assert np.allclose(told.detach().numpy(), np.log(shares)[[0, 1], value], atol=1e-6)
            (g,) = dynamic.autograd.grad(told.sum(), logits)
            counts = np.stack([np.eye(3)[value.reshape(-1, 2)[:, row]].sum(0) for row in (0, 1)])
            assert np.allclose(g.numpy(), counts - value.size / 2 * shares, atol=1e-5)
        with pytest.raises(ValueError, match="support"):
            classes.log_prob(wrap(np.array([3, 0])))


def test_lists_of_ints_count_by_their_values(monkeypatch):
    """They are remembered as tuples are; a list that has changed since is another argument."""
    learn, made = remembered._learnt, []
    monkeypatch.setattr(remembered, "_learnt", lambda *given: made.append(learn(*given)) or made[-1])
    x = wrap(np.random.default_rng(12).normal(size=(2, 3, 6, 4)).astype(np.float32), requires_grad=True)
    functions = {
        "pad": lambda x, n: dynamic.nn.functional.pad(x, n),
        "interpolate": lambda x, n: dynamic.nn.functional.interpolate(x, size=n),
        "amax": lambda x, n: dynamic.amax(x, n),
        "var": lambda x, n: x.var(n),
        "roll": lambda x, n: dynamic.roll(x, n, n),
        "vector_norm": lambda x, n: dynamic.linalg.vector_norm(x, dim=n),
        "sum": lambda x, n: x.sum(n),
        "mean": lambda x, n: dynamic.mean(x, dim=n, keepdim=True),
    }
    for name, f in functions.items():
        made.clear()
        for numbers in ([1, 2], [2, 3]):
            wanted = f(x, tuple(numbers))
            found = often(f, x, numbers)
            (g,), (h,) = (dynamic.autograd.grad(y.sum(), x) for y in (found, wanted))
            assert_all_same_bits([found.detach().numpy(), g.numpy()], [wanted.detach().numpy(), h.numpy()], name)
        assert all(made), name
        assert made or name in ("sum", "mean"), name
        numbers = [1, 2]
        often(f, x, numbers)
        numbers[:] = [2, 3]
        assert_all_same_bits([f(x, numbers).detach().numpy()], [f(x, (2, 3)).detach().numpy()], name)
    for wrong in ([1.0], [True, 1.5], ["1"], [[1]], [None]):
        with pytest.raises((TypeError, ValueError, IndexError)):
            often(dynamic.amax, x, wrong)
