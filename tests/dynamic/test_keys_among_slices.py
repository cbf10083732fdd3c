"""Keys of tensors and masks among slices: calls that are remembered give what numpy gives, and PyTorch's nodes."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as tw
from dynamic.eager import keys_among_slices
from dynamic.eager.remembered import OFTEN, Memory

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 5, 4)).astype(np.float32)
I, J = np.array([3, 0, 3]), np.array([[1, -1], [2, 0], [0, 0]])
KEYS = {
    "a row of a middle dimension": (slice(None), I),
    "behind an ellipsis": (..., J),
    "of the last dimension": (slice(None), slice(None), I),
    "after a part": (slice(1, 5, 2), I),
    "before a part": (I, slice(1, 3)),
    "beside a number": (2, I),
    "before a number": (I, -1),
    "two apart": (I, slice(None), I),
    "two that broadcast": (slice(None), J, J[:1]),
    "a new dimension": (I, None),
    "a new dimension before": (None, slice(None), I),
}


def as_key(key, make):
    return tuple([make(k) if isinstance(k, np.ndarray) else k for k in key])


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_integers_among_slices(key):
    x = tw.tensor(X, requires_grad=True)
    for call in range(OFTEN + 3):
        with tw.set_grad_enabled(call % 2 == 0):
            y = x[as_key(key, tw.tensor)]
        assert np.array_equal(y.detach().numpy(), X[key])
        assert y.requires_grad == (call % 2 == 0)
        if y.requires_grad:
            wanted = np.zeros_like(X)
            np.add.at(wanted, key, 1)
            assert np.array_equal(tw.autograd.grad(y.sum(), x)[0].numpy(), wanted)


def test_lists_and_other_values_of_the_same_key():
    x = tw.tensor(X)
    for call in range(2 * OFTEN):
        i = [call % 4, -1, 0]
        assert np.array_equal(x[:, i].numpy(), X[:, i])
        assert np.array_equal(x[call % 6, :, i[:2]].numpy(), X[call % 6][:, i[:2]])
    with pytest.raises(IndexError):
        x[:, [5]]


@pytest.mark.parametrize("recorded", [False, True])
def test_masks_among_slices(recorded):
    x = tw.tensor(X, requires_grad=recorded)
    for _ in range(OFTEN + 2):
        a, b, c = (RNG.integers(0, 2, n).astype(bool) for n in X.shape)
        for key in [
            (a, 0),
            (a, slice(1, 3)),
            (slice(None), b),
            (..., c),
            (0, b),
            (slice(None), slice(None), c),
            (None, a),
        ]:
            y = x[as_key(key, tw.tensor)]
            assert y.requires_grad == recorded
            assert np.array_equal(y.detach().numpy(), X[key])
        assert np.array_equal(x[tw.tensor(a)].detach().numpy(), X[a])
    for wrong in [(slice(None), tw.tensor(a)), (tw.tensor(b), 0), (0, 0, 0, tw.tensor(a))]:
        with pytest.raises(IndexError):
            x[wrong]


@pytest.mark.parametrize("shape", [(70, 90), (5,), (3, 4, 5, 6), (4, 0, 3), (1, 7), (9000,), (2, 1, 1)])
@pytest.mark.parametrize("dtype", ["bool", "float32", "int8"])
def test_positions(shape, dtype):
    for share in (0, 0.3, 1):
        x = (RNG.random(shape) < share).astype(dtype)
        if dtype == "float32" and x.size:
            x.flat[-1] = np.nan
        for z in (x, x.T, x[..., ::-1]):
            t = tw.from_numpy(z)
            assert np.array_equal(tw.nonzero(t).numpy(), np.argwhere(z))
            assert np.array_equal(tw.argwhere(t).numpy(), np.argwhere(z))
            for found, wanted in zip(tw.nonzero(t, as_tuple=True), np.nonzero(z), strict=True):
                assert np.array_equal(found.numpy(), wanted)


def test_threads_may_name_keys_at_the_same_time(monkeypatch):
    """A name follows from the key, and not from how many have one, which another thread may see too."""

    class Named(dict):
        def __len__(self):
            return 7

    monkeypatch.setattr(keys_among_slices, "_patterns", Named())
    monkeypatch.setattr(keys_among_slices, "_memory", Memory())
    x = tw.tensor(X)
    for _ in range(OFTEN + 2):
        for key in ((slice(2), I), (slice(None), I), (slice(3), I)):
            assert np.array_equal(x[as_key(key, tw.tensor)].numpy(), X[key])
