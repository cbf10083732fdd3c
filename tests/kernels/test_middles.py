"""Where medians and modes stand: the places of a stable order, of rows of all lengths; nan, equal ones, both zeros."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits


def places(x, skip):
    """Of the sorted row, element (n - 1) // 2, or the first nan; or that of what is not nan."""
    found = []
    for row in x.reshape(-1, x.shape[-1]):
        nan, order = np.isnan(row), np.argsort(row, kind="stable")
        if skip:
            found.append(order[max((~nan).sum() - 1, 0) // 2])
        else:
            found.append(np.flatnonzero(nan)[0] if nan.any() else order[(len(row) - 1) // 2])
    return np.array(found).reshape(x.shape[:-1])


def kinds(rng, shape):
    plain = rng.standard_normal(shape)
    yield plain
    yield np.round(plain * 2) / 2 * rng.choice([1.0, -1.0], shape)  # equal ones, zeros of both signs
    yield np.where(rng.random(shape) < 0.2, np.nan, plain)
    yield np.full(shape, np.nan)
    yield np.where(rng.random(shape) < 0.5, np.inf, -np.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(31, 32), (5, 1), (4, 2), (17, 64), (3, 65), (3, 1000), (2, 70000), (2, 3, 16)], ids=str
)
def test_places_are_those_of_a_stable_order(shape, dtype):
    rng = np.random.default_rng(0)
    for x in kinds(rng, shape):
        x = x.astype(dtype)
        for name, skip in (("median", False), ("nanmedian", True)):
            expected = places(x, skip)
            values = np.take_along_axis(x, expected[..., None], -1)[..., 0]
            for tw in (dynamic, static):
                f = tw.function(lambda x, tw=tw, name=name: tuple(getattr(tw, name)(x, -1)))
                for _ in range(2):
                    assert_all_same_bits(f(x), [values, expected], f"{name} of {shape}")
            whole = x.reshape(-1)[places(x.reshape(1, -1), skip)[0]]
            assert_all_same_bits([getattr(dynamic, name)(dynamic.tensor(x)).numpy()], [whole], f"{name} of all")


def most_frequent(row):
    """The last place of the smallest of the most frequent elements; each nan is alone."""
    there = ~np.isnan(row)
    if not there.any():
        return 0
    values, counts = np.unique(row[there] + 0.0, return_counts=True)
    return np.flatnonzero(row == values[counts.argmax()])[-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(62, 16), (5, 1), (4, 2), (17, 64), (3, 65), (2, 300), (2, 3, 5)], ids=str)
def test_modes(shape, dtype):
    rng = np.random.default_rng(0)
    for x in kinds(rng, shape):
        x = x.astype(dtype)
        expected = np.array([most_frequent(row) for row in x.reshape(-1, shape[-1])]).reshape(shape[:-1])
        values = np.take_along_axis(x, expected[..., None], -1)[..., 0]
        for tw in (dynamic, static):
            f = tw.function(lambda x, tw=tw: tuple(tw.mode(x, -1)))
            for _ in range(2):
                assert_all_same_bits(f(x), [values, expected], f"mode of {shape}")


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
@pytest.mark.parametrize("shape", [(31, 32), (5, 1), (17, 64), (3, 65), (4, 1000), (2, 70000), (1500,)], ids=str)
def test_places_of_integers(shape, dtype):
    """With both ends of the range, and few different ones."""
    rng, info = np.random.default_rng(1), np.iinfo(dtype)
    for x in (
        rng.integers(info.min, info.max, shape, dtype, endpoint=True),
        rng.integers(0, 3, shape, dtype),
        rng.choice(np.array([info.min, info.max], dtype), shape),
        np.full(shape, info.max, dtype),
    ):
        order = np.argsort(x, -1, kind="stable")[..., (shape[-1] - 1) // 2]
        for tw in (dynamic, static):
            f = (
                tw.function(lambda x, tw=tw: tuple(tw.median(x, -1)))
                if tw is static
                else lambda x: tuple(dynamic.median(x, -1))
            )
            values, found = f(tw.tensor(x))
            assert_all_same_bits([found.numpy()], [order], dtype)
            assert_all_same_bits([values.numpy()], [np.take_along_axis(x, order[..., None], -1)[..., 0]], dtype)
        assert dynamic.median(dynamic.tensor(x)).item() == np.sort(x, None)[(x.size - 1) // 2]
