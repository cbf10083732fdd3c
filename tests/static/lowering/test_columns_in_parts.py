"""Gradients of columns of short rows: columns among zeros are read where they lie, element by element of a row."""

import random
import re

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits
from tests.helpers.proofs import first


def determinants(tw):
    def loss(a):
        x = a[:, 0, 0] * (a[:, 1, 1] * a[:, 2, 2] - a[:, 1, 2] * a[:, 2, 1])
        y = a[:, 0, 1] * (a[:, 1, 0] * a[:, 2, 2] - a[:, 1, 2] * a[:, 2, 0])
        z = a[:, 0, 2] * (a[:, 1, 0] * a[:, 2, 1] - a[:, 1, 1] * a[:, 2, 0])
        return (x - y + z).sum()

    return tw.function(tw.grad(loss))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_of_elements_of_small_matrices_are_one_kernel_of_vectors(dtype):
    rng = np.random.default_rng(3)
    compiled = determinants(static)
    for n in (300, 7, 1, 64, 1000):
        a = rng.standard_normal((n, 3, 3)).astype(dtype)
        a[0] = -0.0
        found = compiled(a)
        assert_all_same_bits([found], [determinants(dynamic)(a)], f"of {n} matrices")
        if n == 300:  # the gradient of a determinant is the matrix of cofactors
            cofactors = np.linalg.det(a[1:].astype(np.float64))[:, None, None] * np.linalg.inv(a[1:]).swapaxes(1, 2)
            np.testing.assert_allclose(found.numpy()[1:], cofactors, rtol=2e-3, atol=2e-4)
            short = compiled.source.partition("== 3")[2].partition("return 0")[0]
            assert "if c" not in short
            assert "turn_rows(" in short


def polygons(tw):
    def loss(p):
        q = tw.roll(p, -1, 1)
        return ((p[..., 0] * q[..., 1] - q[..., 0] * p[..., 1]).sum(1) ** 2).sum()

    return tw.function(tw.grad(loss))


def test_columns_of_what_is_rolled_are_filled_nowhere():
    rng = np.random.default_rng(4)
    compiled = polygons(static)
    for shape in ((40, 9, 2), (3, 70, 2), (1, 1, 2), (40, 9, 3)):
        p = rng.standard_normal(shape).astype(np.float32)
        assert_all_same_bits([compiled(p)], [polygons(dynamic)(p)], f"polygons {shape}")
        if shape == (40, 9, 2):
            assert not re.search(r"\[.*\bc\b.*\] = float32\(0.0\)\n", compiled.source)
            masked = [x for x in compiled.source.split("\ndef ") if "else float32(0.0)" in x]
            assert masked
            assert all("== 2:" in x for x in masked)


def test_columns_of_gradients_that_are_taken_again_stay_in_parts():
    """Of a stack that is sliced, every column has values of its own: none is placed among zeros."""

    def loss(a, b):
        c = static.stack([a[:, 1] * b[:, 2], a[:, 2] * b[:, 0], a[:, 0] * b[:, 1]], 1)
        return (c[:, 0] * c[:, 1]).sum() + c[:, 2].sum()

    gradient = static.function(static.grad(loss))
    gradient(*np.random.default_rng(0).standard_normal((2, 100, 3)).astype(np.float32))
    assert gradient.source.count(" else float32(0.0)") <= 6


SHAPES = ((150, 3), (70, 2), (40, 3, 2), (300, 2, 5), (90, 8), (5, 3), (20, 13, 2))


def random_program(seed):
    """A sum of products of columns, single and several, of a value and what a move or a factor makes of it."""
    rng = random.Random(seed)
    shape = rng.choice(SHAPES)
    dims = len(shape)

    def key():
        out = [slice(None)] * dims
        for d in rng.sample(range(1, dims), rng.randint(1, dims - 1)):
            n = shape[d]
            start = rng.randrange(n)
            out[d] = rng.choice([start, start - n, slice(start, rng.randint(start + 1, n)), slice(start, None)])
        return tuple(out)

    terms = [
        (key(), rng.random() < 0.3, rng.choice(["roll", "scale", "none", "none"])) for _ in range(rng.randint(2, 7))
    ]

    def make(tw):
        def loss(x, w):
            total = 0.0
            for place, squared, how in terms:
                y = tw.roll(x, 1, dims - 1) if how == "roll" else x * w if how == "scale" else x
                part = y[place]
                total = total + (part * part if squared else part * (part + 1.5)).sum() + part.abs().sum()
            return total

        return tw.function(tw.grad(loss, (0, 1)))

    return make, shape


@pytest.mark.parametrize("seed", first(24, range(40)))
def test_random_columns_have_the_bits_of_the_other_engine(seed):
    make, shape = random_program(seed)
    compiled, expected = make(static), make(dynamic)
    rng = np.random.default_rng(seed)
    for own in (shape, (shape[0] + 33, *shape[1:]), (1, *shape[1:]), (33, *(n + 1 for n in shape[1:]))):
        x, w = rng.standard_normal((2, *own)).astype(np.float32 if seed % 3 else np.float64)
        x[rng.random(own) < 0.2] = -0.0
        w[rng.random(own) < 0.2] = 0.0
        assert_all_same_bits([*compiled(x, w)], [*expected(x, w)], f"{seed} {own}")
