"""Reductions against formulas in plain numpy, and what PyTorch does at their edges."""

from math import inf, isnan, nan

import numpy as np
import pytest

import common.ops.functional as F
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.ops.reduce.mapped_sums import (
    nansum_,
    sum_of_cubes,
    sum_of_deviations,
    sum_of_exponentials,
    sum_of_magnitudes,
    sum_of_squares,
)
from tests.bits import assert_same_bits
from tests.helpers.proofs import each
from tests.helpers.wrapped import wrap
from tests.kernels.run import assert_same_bits as same_bits
from tests.parity.arrays import mixed

RNG = np.random.default_rng(60)
X = RNG.normal(size=(6, 7, 5)) * 3
DIMS = [None, 0, 1, 2, -1, (0, 1), (0, 2), (2, 0), (0, 1, 2)]
HOLES = np.where(RNG.random(X.shape) < 0.3, nan, X)
FORMULAS = {
    "var": (F.var, lambda x, **k: x.var(ddof=1, **k)),
    "var, correction": (lambda *a, **k: F.var(*a, correction=0, **k), lambda x, **k: x.var(**k)),
    "std": (F.std, lambda x, **k: x.std(ddof=1, **k)),
    "std, biased": (lambda x, dim=None, keepdim=False: F.std(x, dim, False, keepdim), lambda x, **k: x.std(**k)),
    "var_mean": (lambda *a, **k: F.var_mean(*a, **k)[0], lambda x, **k: x.var(ddof=1, **k)),
    "mean of var_mean": (lambda *a, **k: F.var_mean(*a, **k)[1], lambda x, **k: x.mean(**k)),
    "std_mean": (lambda *a, **k: F.std_mean(*a, **k)[0], lambda x, **k: x.std(ddof=1, **k)),
    "norm": (lambda *a, **k: F.norm(a[0], 2, *a[1:], **k), lambda x, **k: (x * x).sum(**k) ** 0.5),
    **{
        f"norm {p}": (lambda *a, p=p, **k: F.norm(a[0], p, *a[1:], **k),
                      lambda x, p=p, **k: (np.abs(x) ** p).sum(**k) ** (1 / p))
        for p in (1, 3, 0.5, -2)
    },
    "norm 0": (lambda *a, **k: F.norm(a[0], 0, *a[1:], **k), lambda x, **k: (x != 0).sum(**k)),
    "norm inf": (lambda *a, **k: F.norm(a[0], inf, *a[1:], **k), lambda x, **k: np.abs(x).max(**k)),
    "norm -inf": (lambda *a, **k: F.norm(a[0], -inf, *a[1:], **k), lambda x, **k: np.abs(x).min(**k)),
    "aminmax": (lambda x, dim=None, **k: F.aminmax(x, dim=dim, **k).min, lambda x, **k: x.min(**k)),
    "aminmax, max": (lambda x, dim=None, **k: F.aminmax(x, dim=dim, **k).max, lambda x, **k: x.max(**k)),
}  # fmt: skip


def tensor(x, dtype=np.float64):
    return wrap(np.asarray(x, dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FORMULAS)
@each("dim", DIMS)
def test_value(name, dim, dtype):
    ours, formula = FORMULAS[name]
    for keepdim in (False, True):
        expected = formula(X, axis=dim, keepdims=keepdim)
        result = ours(tensor(X, dtype), dim, keepdim=keepdim).numpy()
        assert (result.dtype, result.shape) == (dtype, expected.shape)
        np.testing.assert_allclose(result, expected, rtol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dim", DIMS, ids=str)
def test_nan_is_left_out(dim):
    np.testing.assert_allclose(F.nansum(tensor(HOLES), dim).numpy(), np.nansum(HOLES, axis=dim), rtol=1e-13)
    np.testing.assert_allclose(F.nanmean(tensor(HOLES), dim).numpy(), np.nanmean(HOLES, axis=dim), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64", "float32", "float64"])
@each("dim", DIMS)
def test_truth(dim, dtype):
    for share in (0.02, 0.5, 0.98):
        x = (RNG.random((6, 70, 5)) < share).astype(dtype) * np.asarray(3, dtype)
        kind = np.dtype("uint8" if dtype == "uint8" else "bool")
        assert_same_bits(F.any(wrap(x), dim).numpy(), np.asarray(x.any(dim)).astype(kind), "any")
        assert_same_bits(F.all(wrap(x), dim).numpy(), np.asarray(x.all(dim)).astype(kind), "all")
        counted = np.asarray(np.count_nonzero(x, dim), np.int64)
        assert_same_bits(F.count_nonzero(wrap(x), dim).numpy(), counted, "count_nonzero")


def test_truth_of_nothing_and_of_nan():
    for shape, dim in (((0,), None), ((0, 3), 0), ((3, 0), 1), ((2, 0, 3), 1)):
        x = wrap(np.ones(shape, np.float32))
        assert not F.any(x, dim).numpy().any()
        assert F.all(x, dim).numpy().all()
        assert F.count_nonzero(x, dim).numpy().sum() == 0
    x = tensor([nan, -0.0])
    assert (bool(F.any(x)), bool(F.all(x)), int(F.count_nonzero(x))) == (True, False, 1)


def test_zero_dimensional_tensors_take_the_last_dimension():
    x = tensor(2.5)
    for name in ("sum", "mean", "amax", "amin", "var", "std", "norm", "any", "all", "count_nonzero", "nansum",
                 "nanmean", "softmax", "log_softmax", "logsumexp", "argmax", "argmin"):  # fmt: skip
        f = getattr(F, name)
        for dim in (0, -1):
            y = f(x, dim=dim)
            assert y.shape == (), name
    assert float(F.softmax(x, -1)) == 1
    assert float(F.logsumexp(x, -1)) == 2.5
    leaf = tensor(2.5).requires_grad_()
    (F.mean(leaf, -1) * F.softmax(leaf, 0)).backward()
    assert float(leaf.grad) == 1


def test_too_few_elements_for_the_correction():
    one = tensor([3.0])
    assert isnan(float(F.var(one)))
    assert isnan(float(F.std(one)))
    assert isnan(float(F.var(tensor([]))))
    two = tensor([3.0, 4.0])
    assert float(F.var(two, correction=2)) == inf
    assert float(F.var(two, correction=5)) == inf


def test_gradients_at_the_edges():
    """Where PyTorch has conventions: std of equal elements, norms of zeros, ties of the infinite norms."""
    for f in (F.std, F.norm, lambda x: F.norm(x, 3), lambda x: F.norm(x, 1), lambda x: F.norm(x, inf)):
        x = tensor([0.0, 0.0, 0.0]).requires_grad_()
        f(x).backward()
        np.testing.assert_array_equal(x.grad.numpy(), [0, 0, 0])
    x = tensor([3.0, -3.0, 1.0]).requires_grad_()
    F.norm(x, inf).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.5, -0.5, 0])
    x = tensor([nan, 2.0]).requires_grad_()
    F.nansum(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 1])


def test_norms_of_special_values():
    assert isnan(float(F.norm(tensor([nan, 1.0]), inf)))
    assert float(F.norm(tensor([-inf, 1.0]), inf)) == inf
    same_bits(F.norm(tensor([-0.0, -0.0]), inf).numpy(), np.array(0.0))
    assert float(F.norm(tensor([1e200]))) == inf  # as in PyTorch: squares overflow
    assert float(F.norm(tensor([0.0, 2.0]), -1)) == 0


def test_arguments_that_are_refused():
    ints = wrap(np.arange(4))
    for name in ("mean", "var", "std", "var_mean", "norm", "nanmean"):
        with pytest.raises(
            DTypeError,
            match=rf"{name}\(\): could not infer output dtype. Input dtype must be a floating point one. Got: int64",
        ):
            getattr(F, name)(ints)
    with pytest.raises(ArgumentError, match="unbiased and correction"):
        F.var(tensor([1.0]), unbiased=True, correction=0)
    with pytest.raises(ShapeError, match="dim must be a 2-tuple"):
        F.norm(tensor([1.0]), "nuc")
    with pytest.raises(ShapeError, match="non-zero size"):
        F.norm(tensor([]), inf)
    with pytest.raises(ShapeError, match="dim 0 appears multiple times"):
        F.var(tensor(X), (0, -3))


def test_positions_in_large_integers():
    """Above 2**53 neighbours are one float64; ties give the first, nan wins."""
    big = 2**53
    x = wrap(np.array([[big, big + 1, big + 1], [-big - 1, -big, -big - 1]]))
    assert F.argmax(x, 1).tolist() == [1, 1]
    assert F.argmin(x, 1).tolist() == [0, 0]
    assert F.argmax(tensor([1.0, nan, 3.0, nan])).tolist() == 1
    for dtype in ("uint8", "int8", "int16", "int32"):
        y = RNG.integers(0, 100, (5, 40, 3)).astype(dtype)
        for dim in range(3):
            assert_same_bits(F.argmax(wrap(y), dim).numpy(), y.argmax(dim), dtype)
            assert_same_bits(F.argmin(wrap(y), dim).numpy(), y.argmin(dim), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5000,), (3000, 7), (7, 3000), (2, 1500, 3), (1025, 1030)], ids=str)
def test_one_kernel_has_the_bits_of_the_composition(shape, dtype):
    """One kernel of the eager engine, written out with ops, where blocks and tiles meet."""
    x = mixed(RNG, shape, dtype, 0.0005)
    for dim in range(x.ndim):
        t = wrap(x)
        mean = F.mean(t, dim, True)
        pairs = {
            "squares": (sum_of_squares(t, dim=(dim,), keepdim=False), F.sum(t * t, dim)),
            "magnitudes": (sum_of_magnitudes(t, dim=(dim,), keepdim=False), F.sum(F.abs(t), dim)),
            "cubes": (sum_of_cubes(t, dim=(dim,), keepdim=False), F.sum(F.abs(t) * F.abs(t) * F.abs(t), dim)),
            "numbers": (nansum_(t, dim=(dim,), keepdim=False), F.sum(F.where(F.isnan(t), 0, t), dim)),
            "deviations": (sum_of_deviations(t, mean, dim=(dim,), keepdim=False), F.sum((t - mean) * (t - mean), dim)),
            "exponentials": (sum_of_exponentials(t, mean, dim=(dim,), keepdim=False), F.sum(F.exp(t - mean), dim)),
        }
        for name, (one, composed) in pairs.items():
            assert_same_bits(one.numpy(), composed.numpy(), f"{name} over {dim}")
        flags = wrap(x > 0)
        assert_same_bits(F.sum(flags, dim).numpy(), (x > 0).sum(dim), f"truths over {dim}")
