"""Writes at indices and ``out=``: calls that are remembered write what NumPy writes, straight to the memory."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic as tw
from dynamic.eager import writing_kernels
from dynamic.eager.remembered import OFTEN

RNG = np.random.default_rng(0)
X, Y = (RNG.standard_normal((6, 5)).astype(np.float32) for _ in range(2))
ROWS, PLACES = np.array([3, 0, 3, 5]), RNG.integers(0, 5, (6, 5))
EACH = np.arange(6)[:, None]


def _at(x, change):
    change(x)
    return x


def _masked(x, mask, value):
    x[mask] = value


#: Per call what it is by NumPy.
WRITES = {
    "index_add": (lambda x, y, i, j: x.index_add_(0, i, y[:4]), lambda x: np.add.at(x, ROWS, Y[:4])),
    "index_add, scaled": (
        lambda x, y, i, j: x.index_add_(0, i, y[:4], alpha=2), lambda x: np.add.at(x, ROWS, 2 * Y[:4])
    ),
    "index_copy": (lambda x, y, i, j: x.index_copy_(0, i, y[:4]), lambda x: x.__setitem__(ROWS, Y[:4])),
    "index_fill": (lambda x, y, i, j: x.index_fill_(0, i, 1.5), lambda x: x.__setitem__(ROWS, 1.5)),
    "index_put": (lambda x, y, i, j: x.index_put_((i,), y[:4]), lambda x: x.__setitem__(ROWS, Y[:4])),
    "index_put, added": (
        lambda x, y, i, j: x.index_put_((i,), y[:4], accumulate=True), lambda x: np.add.at(x, ROWS, Y[:4])
    ),
    "scatter": (lambda x, y, i, j: x.scatter_(1, j, y), lambda x: x.__setitem__((EACH, PLACES), Y)),
    "scatter, a number": (lambda x, y, i, j: x.scatter_(1, j, 2.0), lambda x: x.__setitem__((EACH, PLACES), 2)),
    "scatter, itself": (lambda x, y, i, j: x.scatter_(1, j, x), lambda x: x.__setitem__((EACH, PLACES), x.copy())),
    "scatter_reduce": (
        lambda x, y, i, j: x.scatter_reduce_(1, j, y, "amax"), lambda x: np.maximum.at(x, (EACH, PLACES), Y)
    ),
    "masked_fill": (lambda x, y, i, j: x.masked_fill_(y > 0, -1.0), lambda x: _masked(x, Y > 0, -1)),
    "masked_fill, endless": (
        lambda x, y, i, j: x.masked_fill_(y > 0, float("-inf")), lambda x: _masked(x, Y > 0, -np.inf)
    ),
    "columns": (
        lambda x, y, i, j: x.__setitem__((slice(None), i % 5), 0.5),
        lambda x: x.__setitem__((slice(None), ROWS % 5), 0.5),
    ),
    "columns of a tensor": (
        lambda x, y, i, j: x.__setitem__((slice(None), i % 5), y[:, :4]),
        lambda x: x.__setitem__((slice(None), ROWS % 5), Y[:, :4]),
    ),
    "a part": (
        lambda x, y, i, j: x.__setitem__((slice(1, 5, 2), i % 5), 0.5),
        lambda x: x.__setitem__((slice(1, 5, 2), ROWS % 5), 0.5),
    ),
    "beside a number": (lambda x, y, i, j: x.__setitem__((2, i % 5), 0.5), lambda x: x.__setitem__((2, ROWS % 5), 0.5)),
    "masked columns": (
        lambda x, y, i, j: x.__setitem__((slice(None), y[0] > 0), 0.5),
        lambda x: x.__setitem__((slice(None), Y[0] > 0), 0.5),
    ),
    "masked rows": (lambda x, y, i, j: x.__setitem__(y[:, 0] > 0, 0.5), lambda x: x.__setitem__(Y[:, 0] > 0, 0.5)),
    "masked elements": (lambda x, y, i, j: x.__setitem__(y > 0, y[y > 0]), lambda x: x.__setitem__(Y > 0, Y[Y > 0])),
}  # fmt: skip


@pytest.mark.parametrize("part", ["whole", "a part of another"])
@pytest.mark.parametrize("name", WRITES)
def test_writes_are_numpys(name, part):
    write, by_numpy = WRITES[name]
    y, i, j = map(tw.tensor, (Y, ROWS, PLACES))
    wanted = _at(X.copy(), by_numpy)
    whole = tw.zeros(8, 5)
    for _ in range(OFTEN + 3):
        x = tw.tensor(X) if part == "whole" else whole[1:7]
        x.copy_(tw.tensor(X))
        version = x._version
        write(x, y, i, j)
        assert x._version == version + 1
        assert x.numpy().tobytes() == wanted.tobytes()
    assert not whole[0].any()
    assert not whole[7].any()


def test_what_is_remembered_leaves_the_general_way(monkeypatch):
    y, i, j = map(tw.tensor, (Y, ROWS, PLACES))
    for write, _ in WRITES.values():
        x = tw.tensor(X)
        for _ in range(OFTEN + 1):
            write(x, y, i, j)
        with monkeypatch.context() as patch:
            patch.setattr("common.methods.in_place.run_in_place", None)
            patch.setattr("common.methods.setitem.run_in_place", None)
            patch.setattr("dynamic.eager.writes.general", None)
            write(x, y, i, j)


def test_wrong_indices_leave_everything():
    x, y, far = tw.tensor(X), tw.tensor(Y), tw.tensor(np.array([0, 6, 1, 2]))
    for i in (*[tw.tensor(ROWS)] * (OFTEN + 2), far):
        x.copy_(tw.tensor(X))
        calls = (
            lambda i: x.index_add_(0, i, y[:4]), lambda i: x.index_put_((i,), y[:4]),
            lambda i: x.index_fill_(0, i, 1.0), lambda i: x.__setitem__((i, slice(None)), 0.0),
        )  # fmt: skip
        for call in calls:
            if i is not far:
                call(i)
                continue
            with pytest.raises(IndexError):
                call(i)
    assert x.numpy().tobytes() == X.tobytes()


def test_histories_take_the_general_way():
    p, i = tw.tensor(Y, requires_grad=True), tw.tensor(ROWS)
    for _ in range(OFTEN + 2):
        x = tw.tensor(X)
        x.index_add_(0, i, p[:4])
        assert x.grad_fn is not None
        x[:, :] = 0.0
        x = tw.tensor(X)
        x[:, i % 5] = p[:, :4]
        assert tw.autograd.grad(x.sum(), p)[0].sum() == 2 * 6  # of columns that come twice the last stays
        with pytest.raises(RuntimeError, match="leaf Variable"):
            p.index_fill_(0, i, 0.0)
    y = tw.tensor(X)
    loss = (y * p).sum()
    y.index_fill_(0, i, 0.0)  # the product has saved it
    with pytest.raises(RuntimeError, match="inplace operation"):
        loss.backward()


#: Calls with ``out=``: whether the result is written there by one kernel.
OUTS = {
    "add": (lambda x, y, **o: tw.add(x, y, **o), True),
    "add, scaled": (lambda x, y, **o: tw.add(x, y, alpha=0.5, **o), True),
    "a row": (lambda x, y, **o: tw.mul(x, y[0], **o), True),
    "exp": (lambda x, y, **o: tw.exp(x, **o), True),
    "clamp": (lambda x, y, **o: tw.clamp(x, -0.5, 0.5, **o), True),
    "where": (lambda x, y, **o: tw.where(x > 0, x, y, **o), True),
    "matmul": (lambda x, y, **o: tw.matmul(x, y.T[:, :5].contiguous(), **o), True),
    "cat": (lambda x, y, **o: tw.cat((x[:2], y[:4]), **o), True),
    "cat, columns": (lambda x, y, **o: tw.cat((x, y[:, :3]), 1, **o), True),
    "stack": (lambda x, y, **o: tw.stack((x, y, x), 1, **o), True),
    "gather": (lambda x, y, **o: tw.gather(x, 1, tw.tensor(PLACES), **o), False),
}


@pytest.mark.parametrize("name", OUTS)
def test_out_is_the_result(name, monkeypatch):
    call, by_one = OUTS[name]
    learn, made = writing_kernels._learnt_beside, []
    monkeypatch.setattr(writing_kernels, "_learnt_beside", lambda *given: made.append(learn(*given)) or made[-1])
    monkeypatch.setattr(writing_kernels, "_outs", {})
    x, y = tw.tensor(X), tw.tensor(Y)
    for _ in range(OFTEN + 3):
        wanted = call(x, y)
        out = tw.zeros_like(wanted)
        version = out._version
        assert call(x, y, out=out) is out
        assert out._version == version + 1
        assert out.numpy().tobytes() == wanted.numpy().tobytes()
    assert made
    assert all(made) == by_one
    both = tw.cat((x, y))
    for _ in range(OFTEN + 2):
        parts = both.clone()
        tw.add(parts[:6], parts[6:], out=parts[3:9])  # parts of the same memory
        assert parts[3:9].numpy().tobytes() == (X + Y).tobytes()
    tw.mul(x, y, out=x)
    assert x.numpy().tobytes() == (X * Y).tobytes()


def test_joined_parts_are_read_before_they_are_written_over():
    for _ in range(OFTEN + 3):
        x = tw.tensor(X)
        tw.cat((x[3:], x[:3]), out=x)
        assert x.numpy().tobytes() == np.concatenate((X[3:], X[:3])).tobytes()
        x = tw.tensor(X)
        tw.cat((x,), out=x)
        assert x.numpy().tobytes() == X.tobytes()
        square = tw.tensor(X[:5])
        wanted = square @ square
        tw.matmul(square, square, out=square)
        assert square.numpy().tobytes() == wanted.numpy().tobytes()
        nothing = tw.zeros(0, 5)
        assert tw.cat((nothing, nothing), out=tw.zeros(0, 5)).shape == (0, 5)


def test_out_that_is_another_form_takes_the_general_way():
    x, y, out = tw.tensor(X), tw.tensor(Y), tw.zeros(6, 5)
    for _ in range(OFTEN + 2):
        tw.sub(x, y, out=out)
    wide = tw.zeros(6, 5, dtype=tw.float64)
    assert tw.sub(x, y, out=wide).tolist() == (X - Y).tolist()
    turned = tw.zeros(5, 6)
    tw.sub(x, y, out=turned.T)
    assert np.array_equal(turned.numpy().T, X - Y)
    empty = tw.empty(0)
    assert tw.sub(x, y, out=empty).shape == (6, 5)
    with pytest.warns(UserWarning, match="resized"):
        assert tw.sub(x, y, out=tw.zeros(5)).tolist() == (X - Y).tolist()
    for error, call in {
        "cast": lambda: tw.sub(x, y, out=tw.zeros(6, 5, dtype=tw.int64)),
        "automatic differentiation": lambda: tw.sub(x, y, out=tw.zeros(6, 5, requires_grad=True)),
        "support automatic": lambda: tw.sub(tw.tensor(X, requires_grad=True), y, out=out),
    }.items():
        with pytest.raises(RuntimeError, match=error):
            call()


def test_values_of_numbers_are_not_mixed_up():
    x = tw.zeros(3, 4)
    i = tw.tensor(np.array([1, 2]))
    for call in range(3 * OFTEN):
        value = (0.0, -0.0, 1, True, 1.0)[call % 5]
        x[:, i] = value
        assert x[0, 1].numpy().tobytes() == np.float32(value).tobytes()


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shape", [(30,), (5, 6), (2, 3, 5), ()])
def test_put_writes_through_every_shape(shape, accumulate):
    rng = np.random.default_rng(3)
    x, n = rng.standard_normal(shape).astype(np.float32), 4 if shape else 1
    places, values = rng.integers(0, x.size, (n, 2)), rng.standard_normal((2, n)).astype(np.float32)
    wanted, t, i, v = x.copy(), tw.tensor(x), tw.tensor(places), tw.tensor(values)
    for _ in range(OFTEN + 4):
        if accumulate:
            for at, value in zip(places.reshape(-1), values.reshape(-1), strict=True):
                wanted.reshape(-1)[at] += value
        else:
            for at, value in zip(places.reshape(-1), values.reshape(-1), strict=True):
                wanted.reshape(-1)[at] = value
        assert t.put_(i, v, accumulate) is t
        assert np.allclose(t.numpy(), wanted, rtol=1e-5)
    if accumulate:
        return
    assert t.numpy().tobytes() == wanted.tobytes()
    with pytest.raises(IndexError, match="out of"):
        t.put_(i + x.size, v)
    assert t.numpy().tobytes() == wanted.tobytes()
