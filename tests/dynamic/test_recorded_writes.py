"""``x[key] = value`` with history, by keys of tensors: what is remembered gives NumPy's elements, and one node."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as tw
from dynamic.eager.remembered import OFTEN

RNG = np.random.default_rng(0)
X, V = (RNG.standard_normal((6, 5)).astype(np.float32) for _ in range(2))
MASK, ROWS, COLUMNS = X > 0, np.array([3, 0, 5]), np.array([1, -1, 2])
#: A key, and what is written: a number, or the part of V that the key selects.
WRITES = {
    "a mask": (MASK, -0.0), "masked rows": (MASK[:, 0], 2.0), "masked columns": ((slice(None), MASK[0]), 1.5),
    "rows": (ROWS, 0.5), "rows of a tensor": (ROWS, None), "places": ((ROWS, COLUMNS), None),
    "columns": ((slice(None), COLUMNS), None), "a part": ((slice(1, 6, 2), COLUMNS), -1),
    "beside a number": ((2, ROWS % 5), None),
}  # fmt: skip


def _key(key):
    return tuple(map(_key, key)) if type(key) is tuple else tw.tensor(key) if type(key) is np.ndarray else key


@pytest.mark.parametrize("name", WRITES)
def test_values_gradients_and_nodes(name, monkeypatch):
    key, number = WRITES[name]
    wanted, kept, given = X.copy(), np.ones_like(X), np.zeros_like(X)
    wanted[key], kept[key], given[key] = (V[key] if number is None else number), 0, number is None
    place, nodes = _key(key), set()
    for call in range(OFTEN + 3):
        if call == OFTEN + 2:
            monkeypatch.setattr("dynamic.eager.writes.general", None)
        p, v = (tw.tensor(x, requires_grad=True) for x in (X, V))
        x = p.clone()
        shown, version = x.detach(), x._version
        x[place] = v[place] if number is None else number
        assert x._version == version + 1
        assert x.detach().numpy().tobytes() == shown.numpy().tobytes() == wanted.tobytes()
        grads = tw.autograd.grad(x.sum(), (p, v), allow_unused=True)
        assert np.array_equal(grads[0].numpy(), kept)
        assert number is not None or np.array_equal(grads[1].numpy(), given)
        nodes.add(x.grad_fn.name())
    assert len(nodes) == 1


def test_who_listens_goes_along():
    i = tw.tensor(ROWS)
    for _ in range(OFTEN + 2):
        x, heard = tw.tensor(X, requires_grad=True).clone(), []
        x.register_hook(lambda g, heard=heard: heard.append(g.numpy().copy()))
        x.retain_grad()
        x[i] = 0.0
        (3 * x).sum().backward()
        assert np.array_equal(x.grad.numpy(), np.full_like(X, 3))  # of what it is now
        assert np.array_equal(heard[0], np.where(np.isin(np.arange(6), ROWS)[:, None], 0, 3) * np.ones_like(X))


def test_views_and_leaves_take_the_general_way():
    i = tw.tensor(ROWS)
    for _ in range(OFTEN + 2):
        p = tw.tensor(X, requires_grad=True)
        x = p.clone()
        row = x[3]
        x[i] = 0.0
        assert not row.any()
        assert row.grad_fn.name() == "SelectBackward0"
        assert not tw.autograd.grad(row.sum(), p)[0].any()
        with pytest.raises(RuntimeError, match="leaf Variable"):
            p[i] = 0.0


def test_what_is_refused_leaves_everything():
    i, far = tw.tensor(ROWS), tw.tensor(ROWS + 6)
    for _ in range(OFTEN + 2):
        x = tw.tensor(X, requires_grad=True).clone()
        node, version = x.grad_fn, x._version
        with pytest.raises(IndexError):
            x[far] = 0.0
        with pytest.raises(RuntimeError, match="shape mismatch"):
            x[i] = tw.zeros(2)
        with pytest.raises(IndexError, match="does not match the shape"):
            x[tw.tensor(MASK.T)] = 0.0
        assert x.detach().numpy().tobytes() == X.tobytes()
        assert x.grad_fn is node
        assert x._version == version
        x[i] = 0.0
    saved = x.exp()
    saved[i] = 0.0  # its rule reads it
    with pytest.raises(RuntimeError, match="inplace operation"):
        saved.sum().backward()
