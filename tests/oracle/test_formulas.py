"""Values against formulas written independently in plain numpy and mpmath; tolerances of a few roundings."""

import math

import mpmath
import numpy as np
import pytest

import common.ops.functional as F
from tests.helpers.wrapped import wrap

RNG = np.random.default_rng(40)
X = RNG.normal(size=(7, 5)) * 3
W, B = RNG.normal(size=(4, 5)), RNG.normal(size=4)
T = RNG.integers(0, 5, 7)


def ours(f, *arrays, dtype=np.float64):
    return f(*[wrap(a.astype(dtype) if a.dtype.kind == "f" else a) for a in arrays]).numpy()


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def erf(x):
    return np.array([math.erf(v) for v in x.ravel()]).reshape(x.shape)


def gather(x, axis, index):
    out = np.empty(index.shape)
    for place in np.ndindex(*index.shape):
        source = list(place)
        source[axis] = index[place]
        out[place] = x[tuple(source)]
    return out


def scatter_add(x, axis, index, src):
    out = x.copy()
    for place in np.ndindex(*index.shape):
        target = list(place)
        target[axis] = index[place]
        out[tuple(target)] += src[place]
    return out


def layer_norm(x, w, b, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * w + b


INDEX = RNG.integers(0, 5, (7, 3))
SRC = RNG.normal(size=(7, 3))
SCALE, SHIFT = RNG.normal(size=5), RNG.normal(size=5)
A3, B3 = RNG.normal(size=(2, 1, 3, 4)), RNG.normal(size=(5, 4, 2))
picked = np.log(softmax(X, 1))[np.arange(7), T]
FORMULAS = {
    "softmax": (lambda x: F.softmax(x, 1), (X,), softmax(X, 1)),
    "softmax of columns": (lambda x: F.softmax(x, 0), (X,), softmax(X, 0)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), (X,), np.log(softmax(X, 1))),
    "logsumexp": (lambda x: F.logsumexp(x, (0, 1)), (X,), np.log(np.exp(X).sum())),
    "cross_entropy": (F.cross_entropy, (X, T), -picked.mean()),
    "cross_entropy, sum": (lambda x, t: F.cross_entropy(x, t, reduction="sum"), (X, T), -picked.sum()),
    "cross_entropy, none": (lambda x, t: F.cross_entropy(x, t, reduction="none"), (X, T), -picked),
    "nll_loss": (F.nll_loss, (X, T), -X[np.arange(7), T].mean()),
    "mse_loss": (F.mse_loss, (X, X[::-1]), ((X - X[::-1]) ** 2).mean()),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, 5, w, b), (X, SCALE, SHIFT), layer_norm(X, SCALE, SHIFT)),
    "gelu": (F.gelu, (X,), 0.5 * X * (1 + erf(X / math.sqrt(2)))),
    "gelu, tanh": (
        lambda x: F.gelu(x, "tanh"), (X,),
        0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))),
    ),
    "sigmoid": (F.sigmoid, (X,), 1 / (1 + np.exp(-X))),
    "linear": (F.linear, (X, W, B), X @ W.T + B),
    "addmm": (lambda c, a, b: F.addmm(c, a, F.transpose(b, 0, 1), beta=0.5, alpha=2), (B, X, W), 0.5 * B + 2 * X @ W.T),
    "matmul": (F.matmul, (A3, B3), np.einsum("abik,ckj->acij", A3, B3)),
    "mean": (lambda x: F.mean(x, (0,), True), (X,), X.mean(0, keepdims=True)),
    "amax": (lambda x: F.amax(x, 1), (X,), X.max(1)),
    "amin": (lambda x: F.amin(x, 0), (X,), X.min(0)),
    "gather": (lambda x, i: F.gather(x, 1, i), (X, INDEX), gather(X, 1, INDEX)),
    "scatter_add": (lambda x, i, s: F.scatter_add(x, 1, i, s), (X, INDEX, SRC), scatter_add(X, 1, INDEX, SRC)),
    "index_select": (lambda x, i: F.index_select(x, 0, i), (X, T), np.stack([X[i] for i in T])),
    "embedding": (lambda w, i: F.embedding(i, w), (X, INDEX), np.stack([[X[j] for j in i] for i in INDEX])),
    "clamp": (lambda x: F.clamp(x, -1, 0.5), (X,), np.clip(X, -1, 0.5)),
    "relu": (F.relu, (X,), np.where(X > 0, X, 0)),
    "where": (lambda x, y: F.where(x > y, x, y), (X, -X), np.abs(X)),
    "cat": (lambda a, b: F.cat([a, b], 1), (X, X * 2), np.concatenate([X, X * 2], 1)),
    "stack": (lambda a, b: F.stack([a, b], 1), (X, X * 2), np.stack([X, X * 2], 1)),
    "getitem": (lambda x: x[1:6:2, None, -1], (X,), X[1:6:2, None, -1]),
    "narrow": (lambda x: F.narrow(x, 1, 1, 3), (X,), X[:, 1:4]),
    "select": (lambda x: F.select(x, 0, -1), (X,), X[-1]),
    "permute": (lambda x: F.permute(x, 1, 0), (X,), X.T),
    "expand": (lambda x: F.expand(F.unsqueeze(x, 0), 3, -1, -1), (X,), np.stack([X] * 3)),
    "flatten": (F.flatten, (X,), X.ravel()),
    "pow": (F.pow, (np.abs(X), X), np.abs(X) ** X),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FORMULAS)
def test_value(name, dtype):
    f, arrays, expected = FORMULAS[name]
    if dtype is np.float32 and name == "pow":  # the error of rounding the operands grows with the exponent
        arrays = [a.astype(np.float32) for a in arrays]
        expected = np.float_power(*[a.astype(np.float64) for a in arrays])
    result = ours(f, *arrays, dtype=dtype)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, expected, rtol=64 * np.finfo(dtype).eps, atol=64 * np.finfo(dtype).eps)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "erf"])
def test_elementary_function_is_the_one_of_mathematics(name):
    """That the op of this name computes this function; its accuracy is measured in test_elementary.py."""
    x = RNG.uniform(0.05, 4, 50)
    with mpmath.workdps(30):
        expected = np.array([float(getattr(mpmath, name)(mpmath.mpf(float(v)))) for v in x])
    np.testing.assert_allclose(ours(getattr(F, name), x), expected, rtol=1e-15)


def test_extreme_rows_do_not_overflow():
    x = np.array([[1000.0, 0.0, -1000.0], [-np.inf, 0.0, 1.0]])
    np.testing.assert_allclose(ours(lambda x: F.softmax(x, 1), x)[0], [1, 0, 0])
    assert np.isfinite(ours(lambda x: F.logsumexp(x, 1), x)).all()
    assert ours(lambda x: F.logsumexp(x, 1), np.full((1, 2), -np.inf))[0] == -np.inf


@pytest.mark.quick
def test_ties_share_the_gradient():
    x = wrap(np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), requires_grad=True)
    F.amax(x, 1).backward(wrap(np.array([6.0, 9.0])))
    np.testing.assert_array_equal(x.grad.numpy(), [[0, 3, 3], [3, 3, 3]])
    a, b = (wrap(np.array([1.0, 2.0]), requires_grad=True) for _ in range(2))
    F.maximum(a, b).backward(wrap(np.array([4.0, 8.0])))
    np.testing.assert_array_equal(a.grad.numpy(), [2, 4])
    np.testing.assert_array_equal(b.grad.numpy(), [2, 4])
