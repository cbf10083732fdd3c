"""Activations of straight pieces, normalisations, integrals, quantiles and cells against formulas in plain numpy."""

import math

import numpy as np
import pytest

import common.ops.functional as F
import dynamic
import static
from common.core.errors import TwingradError
from common.core.op import REGISTRY
from common.nn.scaled_attention import scaled_dot_product_attention
from tests.helpers.wrapped import wrap

RNG = np.random.default_rng(50)
X = RNG.normal(size=(5, 6)) * 3
Z = RNG.normal(size=(3, 4, 2))
S = RNG.normal(size=4)
PLACES = RNG.normal(size=5)


def standard(x, axes, eps=1e-5):
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + eps)


def attention(q, k, v, seen):
    scores = np.where(seen, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


Q, K, V = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
FORMULAS = {
    "hardsigmoid": (F.hardsigmoid, (X,), np.clip(X + 3, 0, 6) / 6),
    "hardswish": (F.hardswish, (X,), X * np.clip(X + 3, 0, 6) / 6),
    "hardshrink": (lambda x: F.hardshrink(x, 1.0), (X,), np.where(abs(X) > 1, X, 0)),
    "softshrink": (lambda x: F.softshrink(x, 1.0), (X,), np.sign(X) * np.maximum(abs(X) - 1, 0)),
    "tanhshrink": (F.tanhshrink, (X,), X - np.tanh(X)),
    "threshold": (lambda x: F.threshold(x, 0.5, 9.0), (X,), np.where(X > 0.5, X, 9)),
    "prelu": (F.prelu, (Z, S), np.where(Z > 0, Z, Z * S[:, None])),
    "glu": (F.glu, (X,), X[:, :3] * sigmoid(X[:, 3:])),
    "softmin": (lambda x: F.softmin(x, 0), (X,), np.exp(-X) / np.exp(-X).sum(0)),
    "normalize": (F.normalize, (X,), X / np.linalg.norm(X, axis=1, keepdims=True)),
    "rms_norm": (lambda x: F.rms_norm(x, (6,), eps=0.1), (X,), X / np.sqrt((X**2).mean(1, keepdims=True) + 0.1)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (Z, S, S),
                   standard(Z.reshape(3, 2, 4), 2).reshape(Z.shape) * S[:, None] + S[:, None]),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (Z,), standard(Z, (0, 2))),
    "batch_norm, after training": (lambda x, m: F.batch_norm(x, m, m * m), (Z, S),
                                   (Z - S[:, None]) / np.sqrt(S[:, None] ** 2 + 1e-5)),
    "attention": (scaled_dot_product_attention, (Q, K, V), attention(Q, K, V, True)),
    "attention, causal": (lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True), (Q, K, V),
                          attention(Q, K, V, np.tri(5, dtype=bool))),
    "diff": (lambda x: F.diff(x, 2, 0), (X,), np.diff(X, 2, 0)),
    "trapezoid": (lambda y, x: F.trapezoid(y, x, dim=0), (X, PLACES), np.trapezoid(X, PLACES, axis=0)),
    "cumulative_trapezoid": (lambda x: F.cumulative_trapezoid(x, dx=0.5), (X,),
                             np.cumsum((X[:, 1:] + X[:, :-1]) / 4, 1)),
    "median": (lambda x: F.median(x, 1)[0], (X,), np.sort(X, 1)[:, 2]),
    "quantile": (lambda x: F.quantile(x, 0.3, 1), (X,), np.quantile(X, 0.3, 1)),
    "quantile, higher": (lambda x: F.quantile(x, 0.3, interpolation="higher"), (X,),
                         np.quantile(X, 0.3, method="higher")),
    "float_power": (lambda x: F.float_power(x, 2), (X,), X**2),
    "vdot": (F.vdot, (S, S), S @ S),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_values(name):
    f, arrays, expected = FORMULAS[name]
    np.testing.assert_allclose(f(*map(wrap, arrays)).numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_nan_makes_medians_and_quantiles_nan(axis):
    x = X.copy()
    x[1, 2] = np.nan
    found = F.median(wrap(x), axis)
    values, place = (found, None) if axis is None else (found.values, found.indices)
    assert np.array_equal(np.isnan(values.numpy()), np.isnan(x).any(axis))
    assert np.array_equal(np.isnan(F.quantile(wrap(x), 0.5, axis).numpy()), np.isnan(x).any(axis))
    if place is not None:
        picked = np.take_along_axis(x, np.expand_dims(place.numpy(), axis), axis).squeeze(axis)
        assert np.array_equal(picked, values.numpy(), equal_nan=True)


def test_isin_and_differences_of_bools():
    x = np.array([[1, 2], [3, 4]])
    assert F.isin(wrap(x), wrap(np.array([4, 1]))).tolist() == [[True, False], [False, True]]
    assert F.isin(wrap(x), wrap(np.array([4])), invert=True).tolist() == [[True, True], [True, False]]
    assert F.diff(wrap(np.array([True, True, False]))).tolist() == [False, True]


def step(cell, x, h, c):
    """One step of a cell in numpy."""
    w, u, b, d = (p.detach().numpy() for p in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh))
    a, r = x @ w.T + b, h @ u.T + d
    if isinstance(cell, dynamic.nn.RNNCell):
        return np.tanh(a + r)
    if isinstance(cell, dynamic.nn.GRUCell):
        (ir, iz, new), (hr, hz, old) = np.split(a, 3, -1), np.split(r, 3, -1)
        z = sigmoid(iz + hz)
        return (1 - z) * np.tanh(new + sigmoid(ir + hr) * old) + z * h
    i, f, g, o = np.split(a + r, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells(kind):
    cell = getattr(dynamic.nn, kind)(3, 4, dtype=np.float64)
    x, h, c = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 4)), RNG.normal(size=(5, 4))
    state = (h, c) if kind == "LSTMCell" else h
    given = tuple(map(wrap, state)) if kind == "LSTMCell" else wrap(h)
    found, expected = cell(wrap(x), given), step(cell, x, h, c)
    for y, z in zip(*((found, expected) if kind == "LSTMCell" else ([found], [expected])), strict=True):
        np.testing.assert_allclose(y.detach().numpy(), z, rtol=1e-12)
    first, zeros = cell(wrap(x)), step(cell, x, h * 0, c * 0)
    np.testing.assert_allclose((first[0] if kind == "LSTMCell" else first).detach().numpy(),
                               zeros[0] if kind == "LSTMCell" else zeros, rtol=1e-12)  # fmt: skip


MODULES = [
    ("GLU", (), (3, 4)), ("Hardshrink", (), (3, 4)), ("Hardsigmoid", (), (3, 4)), ("Hardswish", (), (3, 4)),
    ("PReLU", (4,), (3, 4)), ("Softmin", (1,), (3, 4)), ("Softshrink", (), (3, 4)), ("Tanhshrink", (), (3, 4)),
    ("Threshold", (0.1, 2.0), (3, 4)), ("BatchNorm1d", (4,), (3, 4)), ("BatchNorm2d", (4,), (3, 4, 2, 2)),
    ("BatchNorm3d", (4,), (3, 4, 1, 2, 2)), ("GroupNorm", (2, 4), (3, 4, 2)), ("RMSNorm", (4,), (3, 4)),
    ("Softsign", (), (3, 4)), ("RNNCell", (4, 2), (3, 4)), ("GRUCell", (4, 2), (3, 4)), ("LSTMCell", (4, 2), (3, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "shape"), MODULES)
def test_modules_have_the_same_bits_and_states_in_both_engines(name, arguments, shape):
    x = RNG.normal(size=shape).astype(np.float32)
    made = []
    for engine in (dynamic, static):
        engine.manual_seed(3)
        module = getattr(engine.nn, name)(*arguments)
        repr(module)

        def loss(x, module=module):
            y = module(x)
            return ((y[0] if isinstance(y, tuple) else y) ** 2).sum()

        run = engine.function(engine.value_and_grad(loss))
        value, gradient = run(x) and run(x)  # twice: what training has seen moves on
        module.eval()
        held = [np.asarray(t.detach().numpy()) for t in module.state_dict().values()]
        made.append([np.asarray(getattr(t, "detach", lambda t=t: t)()).tobytes() for t in (value, gradient, *held)])
    assert made[0] == made[1]


REFUSED = {
    "groups": lambda x: F.group_norm(x, 4),
    "statistics": lambda x: F.batch_norm(x, None, None),
    "one value per channel": lambda x: F.batch_norm(x[:1], None, None, training=True),
    "halves": lambda x: F.glu(x[:, :3]),
    "slopes": lambda x: F.prelu(x, x[0, :2]),
    "width of a shrinkage": lambda x: F.softshrink(x, -1.0),
    "order of a difference": lambda x: F.diff(x, -1),
    "q": lambda x: F.quantile(x, 1.5),
    "interpolation": lambda x: F.quantile(x, 0.5, interpolation="best"),
    "elements of a median": lambda x: F.median(x[:0], 0),
    "x and dx": lambda x: F.trapezoid(x, x, dx=1),
    "two masks": lambda x: scaled_dot_product_attention(x, x, x, x, is_causal=True),
    "channels": lambda x: dynamic.nn.GroupNorm(2, 3),
    "dimensions": lambda x: dynamic.nn.BatchNorm1d(6)(x[0]),
    "nonlinearity": lambda x: dynamic.nn.RNNCell(2, 2, nonlinearity="sin"),
    "width of a cell's input": lambda x: dynamic.nn.GRUCell(2, 2)(x),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refuses(what):
    with pytest.raises(TwingradError) as raised:
        REFUSED[what](wrap(X))
    assert len(str(raised.value)) > 20


def test_kernels_that_index_refuse_shapes_that_do_not_belong_together():
    """Ops refuse themselves the operands that public functions guard: nothing reads or writes out of bounds."""
    x, short = wrap(np.zeros((4, 5))), wrap(np.zeros((2, 5)))
    index, row = wrap(np.zeros((4, 5), np.int64)), wrap(np.zeros(7, np.int64))
    calls = [
        lambda: REGISTRY["gather"](short, index, dim=1), lambda: REGISTRY["gather"](x, row, dim=0),
        lambda: REGISTRY["scatter_zeros"](short, index, extent=5, dim=1),
        lambda: REGISTRY["put_zeros"](x, row, extent=9, dim=0),
        lambda: REGISTRY["pick"](x, row), lambda: REGISTRY["spread"](x, row, extent=5),
        lambda: REGISTRY["index_get2"](x, row, row, dim=1, wrap=True),
        lambda: REGISTRY["index_add1"](x, short, row, dim=0, wrap=True),
        lambda: REGISTRY["index_set1"](x, wrap(np.zeros((7, 5), np.float32)), row, dim=0, wrap=True),
        lambda: REGISTRY["index_clear3"](x, row, row, row, dim=0, wrap=True),
        lambda: REGISTRY["index_put_zeros1"](x, row, extents=(9,), dim=0, wrap=True),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=r"shape|dtype"):
            call()
