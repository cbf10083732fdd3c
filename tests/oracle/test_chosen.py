"""Medians, modes, counts, distances, parts of numbers and losses against formulas in plain numpy and Python."""

import math
from collections import Counter

import numpy as np
import pytest

import common.ops.functional as F
from common.core.errors import ArgumentError
from tests.helpers.wrapped import wrap

RNG = np.random.default_rng(70)
X = RNG.normal(size=(5, 6)) * 3
Y = RNG.normal(size=(5, 6))
HOLES = np.where(RNG.random(X.shape) < 0.3, np.nan, X)
COUNTS = RNG.integers(0, 6, X.shape).astype(float)
SIGNS = np.array([1, -1, 1, -1, -1])
INDEX = RNG.integers(0, 6, (5, 9))
SRC = RNG.normal(size=(5, 9))
COSINE = (X * Y).sum(1) / np.sqrt((X * X).sum(1) * (Y * Y).sum(1))
STIRLING = COUNTS * np.log(np.maximum(COUNTS, 1)) - COUNTS + 0.5 * np.log(2 * np.pi * np.maximum(COUNTS, 1))


def distance(a, b):
    return np.sqrt(((a - b + 1e-6) ** 2).sum(-1))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FORMULAS = {
    "nanmedian": (lambda x: F.nanmedian(x, 1)[0], (X[:, :5],), np.median(X[:, :5], 1)),
    "nanquantile": (lambda x: F.nanquantile(x, 0.3, 1), (HOLES,), np.nanquantile(HOLES, 0.3, 1)),
    "nanquantile, higher": (lambda x: F.nanquantile(x, 0.3, interpolation="higher"), (HOLES,),
                            np.nanquantile(HOLES, 0.3, method="higher")),
    "ldexp": (F.ldexp, (X, COUNTS), np.ldexp(X, COUNTS.astype(int))),
    "histc": (lambda x: F.histc(x, 7), (X,), np.histogram(X, 7)[0]),
    "histc, ends": (lambda x: F.histc(x, 4, -1, 2), (HOLES,), np.histogram(X[~np.isnan(HOLES)], 4, (-1, 2))[0]),
    "cdist": (F.cdist, (X, Y), np.linalg.norm(X[:, None] - Y[None], axis=-1)),
    "cdist, 1": (lambda a, b: F.cdist(a, b, 1), (X, Y), abs(X[:, None] - Y[None]).sum(-1)),
    "pairwise_distance": (F.pairwise_distance, (X, Y), distance(X, Y)),
    "softsign": (F.softsign, (X,), X / (1 + abs(X))),
    "poisson_nll_loss": (F.poisson_nll_loss, (X, COUNTS), (np.exp(X) - COUNTS * X).mean()),
    "poisson_nll_loss, full": (lambda x, t: F.poisson_nll_loss(x, t, False, True, reduction="none"), (abs(X), COUNTS),
                               abs(X) - COUNTS * np.log(abs(X) + 1e-8) + np.where(COUNTS > 1, STIRLING, 0)),
    "gaussian_nll_loss": (F.gaussian_nll_loss, (X, Y, abs(X[:, 0])),
                          (np.log(abs(X[:, :1])) + (X - Y) ** 2 / abs(X[:, :1])).mean() / 2),
    "gaussian_nll_loss, full": (lambda x, y: F.gaussian_nll_loss(x, y, 2.0, True), (X, Y),
                                (np.log(4 * np.pi) + (X - Y) ** 2 / 2).mean() / 2),
    "triplet_margin_loss": (F.triplet_margin_loss, (X, Y, Y[::-1]),
                            np.maximum(distance(X, Y) - distance(X, Y[::-1]) + 1, 0).mean()),
    "cosine_embedding_loss": (lambda a, b: F.cosine_embedding_loss(a, b, wrap(SIGNS), 0.1), (X, Y),
                              np.where(SIGNS == 1, 1 - COSINE, np.maximum(COSINE - 0.1, 0)).mean()),
    "multilabel_soft_margin_loss": (F.multilabel_soft_margin_loss, (X, (COUNTS > 2) * 1.0),
                                    -np.where(COUNTS > 2, np.log(sigmoid(X)), np.log(sigmoid(-X))).mean()),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_values(name):
    f, arrays, expected = FORMULAS[name]
    np.testing.assert_allclose(f(*map(wrap, arrays)).numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_and_neighbours_of_numbers(dtype):
    info = np.finfo(dtype)
    rng = np.random.default_rng(0)
    edges = [0, -0.0, info.tiny, -info.tiny / 2, info.smallest_subnormal, info.max, np.inf, -np.inf, np.nan, 1, -1]
    patterns = rng.integers(0, 256, 8 * 4000, dtype=np.uint8).view(dtype)  # all exponents
    x = np.concatenate([np.array(edges, dtype), patterns])
    mantissa, exponent = (t.numpy() for t in F.frexp(wrap(x)))
    assert exponent.dtype == np.int32
    finite = np.isfinite(x)
    pairs = [math.frexp(v) for v in x[finite].tolist()]
    assert np.asarray(mantissa[finite]).tobytes() == np.array([m for m, _ in pairs], dtype).tobytes()
    assert exponent[finite].tolist() == [e for _, e in pairs]
    assert np.array_equal(mantissa[~finite], x[~finite], equal_nan=True)
    assert not exponent[~finite].any()
    y = rng.permutation(x)
    with np.errstate(all="ignore"):
        found, expected = F.nextafter(wrap(x), wrap(y)).numpy(), np.nextafter(x, y)
    assert np.array_equal(found, expected, equal_nan=True)
    number = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found[number]), np.signbit(expected[number]))


def test_the_mode_is_the_most_frequent_and_smallest_and_stands_last():
    x = np.random.default_rng(0).integers(0, 3, (40, 7))
    values, indices = (t.numpy() for t in F.mode(wrap(x), 1))
    for row, value, index in zip(x.tolist(), values, indices, strict=True):
        counts = Counter(row)
        assert value == min(v for v in counts if counts[v] == max(counts.values()))
        assert index == max(i for i, v in enumerate(row) if v == value)


def test_nan_is_left_out_of_medians_as_long_as_there_is_anything_else():
    x = HOLES.copy()
    x[2] = np.nan
    values, indices = (t.numpy() for t in F.nanmedian(wrap(x), 1))
    for row, value, index in zip(x, values, indices, strict=True):
        rest = np.sort(row[~np.isnan(row)])
        assert np.array_equal(value, rest[(len(rest) - 1) // 2] if len(rest) else np.nan, equal_nan=True)
        assert np.array_equal(row[index], value, equal_nan=True)


def test_counts_of_integers():
    x, w = np.array([3, 1, 3, 0]), np.array([0.5, 2.0, 0.25, 1.0])
    assert F.bincount(wrap(x)).tolist() == np.bincount(x).tolist()
    assert F.bincount(wrap(x), wrap(w), 6).tolist() == np.bincount(x, w, 6).tolist()
    assert F.bincount(wrap(x[:0]), minlength=2).tolist() == [0, 0]
    with pytest.raises(ArgumentError, match="non-negative"):
        F.bincount(wrap(-x))


def test_the_mean_over_labels_is_that_of_the_input_s_last_dimension():
    weight = 0.5 + np.arange(2.0 * X.size).reshape(2, *X.shape)  # more dimensions than the input
    found = F.multilabel_soft_margin_loss(wrap(X), wrap((COUNTS > 2) * 1.0), wrap(weight[0]), reduction="none")
    each = -np.where(COUNTS > 2, np.log(sigmoid(X)), np.log(sigmoid(-X)))
    np.testing.assert_allclose(found.numpy(), (each * weight[0]).mean(1), rtol=1e-12)
    found = F.multilabel_soft_margin_loss(wrap(X), wrap((COUNTS > 2) * 1.0), wrap(weight), reduction="none")
    np.testing.assert_allclose(found.numpy(), (each * weight).sum(1) / X.shape[1], rtol=1e-12)


_COMBINE = {"sum": sum, "prod": math.prod, "amax": max, "amin": min, "mean": lambda v: sum(v) / len(v)}


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", _COMBINE)
def test_what_is_combined_at_indices(reduce, include_self):
    expected = X.copy()
    for i in range(5):
        for k in range(6):
            sent = SRC[i, INDEX[i] == k].tolist()
            if sent:
                expected[i, k] = _COMBINE[reduce]([X[i, k]] * include_self + sent)
    operands = (wrap(X), 1, wrap(INDEX), wrap(SRC), reduce)
    found = F.scatter_reduce(*operands, include_self=include_self)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)


def test_gradients_of_products_at_indices_with_zeros():
    """The product of the others, whether none, one or two of them are 0."""
    x, v = wrap(np.ones(3)), wrap(np.array([2.0, 3.0, 0.0, 5.0, 0.0, 0.0])).requires_grad_()
    index = wrap(np.array([0, 0, 1, 1, 2, 2]))
    F.scatter_reduce(x, 0, index, v, "prod").sum().backward()
    assert v.grad.tolist() == [3.0, 2.0, 5.0, 0.0, 0.0, 0.0]
