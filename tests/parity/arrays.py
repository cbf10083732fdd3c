"""Inputs for the generated tests: sizes around every border, layouts, special values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

SIZES = (0, 1, 2, 31, 32, 33, 1023, 1024, 1025)
BIG = 1024 * 1024 + 1


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Ordinary values of a dtype; small ints, so that sums and products stay readable."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    if kind in "iu":
        return np.asarray(rng.integers(0 if kind == "u" else -9, 10, shape), dtype)
    return np.asarray(rng.normal(size=shape), dtype)


def special(dtype: str) -> np.ndarray:
    """Every value that kernels treat differently: zeros, subnormals, infinities, nan, borders, ties."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 2], kind)
    f = np.finfo(kind)
    values = [0, f.smallest_subnormal, f.tiny / 2, f.tiny, f.eps, 0.5, 1, 1.5, 2, 3, 37.25, 88.8, 710, f.max, np.inf]
    with np.errstate(over="ignore"):
        positive = np.array(values).astype(kind)
    return np.concatenate([positive, -positive, np.array([np.nan], kind)])


def mixed(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, share: float = 0.05) -> np.ndarray:
    """Ordinary values with a share of special ones."""
    x = normal(rng, shape, dtype)
    chosen = rng.random(shape) < share
    return np.where(chosen, rng.choice(special(dtype), shape), x).astype(dtype)


def pairs(rng: np.random.Generator, count: int, dtype: str) -> list[np.ndarray]:
    """Special values in all combinations for up to two operands, shuffled together for more."""
    values = special(dtype)
    if count == 1:
        return [values]
    if count == 2:
        return [x.ravel().copy() for x in np.meshgrid(values, values, indexing="ij")]
    return [rng.choice(values, 600) for _ in range(count)]


def strided(x: np.ndarray) -> Iterator[np.ndarray]:
    """The same values in other memory layouts: every other element, reversed, column order, an odd address."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), x.dtype)
    wide[..., 1::2] = x
    yield wide[..., 1::2]
    yield x[..., ::-1].copy()[..., ::-1]
    yield np.asfortranarray(x)
    memory = np.zeros(x.nbytes + x.itemsize + 1, np.uint8)
    odd = memory[1 : 1 + x.nbytes].view(x.dtype).reshape(x.shape)
    odd[...] = x
    yield odd
