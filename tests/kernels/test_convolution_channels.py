"""Convolutions that leave out what lies outside of images have the bits of those that multiply it."""

import numpy as np
import pytest

import dynamic
from tests.kernels.run import assert_same_bits
from tests.kernels.test_convolution_blocks import F, whole

# rows that are whole tiles, with padding: images of one row, of two, of several tiles; several images at once, groups
CASES = [
    ((4, 32, 8, 8), (128, 32, 3, 3), {"padding": 1}),
    ((8, 40, 5, 16), (96, 40, 3, 3), {"padding": 1}),
    ((3, 33, 2, 24), (48, 33, 2, 2), {"padding": 1}),
    ((16, 34, 1, 32), (100, 34, 3, 3), {"padding": 1}),
    ((4, 64, 6, 16), (192, 32, 3, 3), {"padding": 1, "groups": 2}),
    ((9, 16, 4, 8), (32, 16, 1, 3), {"padding": (0, 1)}),
    ((5, 16, 6, 8), (33, 16, 3, 1), {"padding": (1, 0)}),
    ((4, 47, 7, 8), (110, 47, 3, 3), {"padding": (1, 2), "dilation": (1, 2)}),
    ((4, 48, 6, 8), (20, 48, 3, 3), {"padding": 1}),
    ((2, 32, 9, 16), (17, 32, 2, 2), {}),
    ((3, 32, 5, 8), (16, 32, 3, 3), {"padding": (0, 3)}),
    ((1, 32, 26, 32), (32, 32, 3, 3), {"padding": 1}),  # too many windows
    ((8, 24, 9, 9), (31, 24, 3, 3), {"padding": 1, "stride": 2}),
    ((2, 16, 20, 17), (40, 16, 5, 4), {"padding": (2, 1)}),
    ((3, 9, 14, 15), (26, 9, 2, 7), {"padding": (1, 6), "dilation": (2, 1)}),
]


def scaled(rng, size, dtype, scale):
    """Normal numbers; or such that all products underflow, some of them from zeros of both signs."""
    x = rng.normal(size=size).astype(dtype)
    if scale is None:
        return x
    x[rng.random(size) < 0.3] *= 0
    return x * np.array(scale, dtype)


@pytest.mark.parametrize("kind", ["numbers", "underflow", "weight", "image", "cotangent"])
@pytest.mark.parametrize(("x", "w", "attrs"), CASES)
def test_bits_are_those_of_products_with_zeros(x, w, attrs, kind):
    """Also where sums are -0.0, and where something is infinite or NaN: beside zeros that makes NaN."""
    rng = np.random.default_rng(len(kind))
    dtype = "float64" if rng.random() < 0.3 else "float32"
    tiny = {"float32": 1e-25, "float64": 1e-170}[dtype] if kind == "underflow" else None
    arrays = [scaled(rng, size, dtype, tiny) for size in (x, w)]
    shape = F.conv2d(*map(dynamic.tensor, arrays), **attrs).shape
    arrays.append(scaled(rng, shape, dtype, tiny))
    if kind in ("image", "weight", "cotangent"):
        spoilt = arrays[("image", "weight", "cotangent").index(kind)]
        spoilt.flat[rng.integers(spoilt.size, size=2)] = np.inf, np.nan

    def found(f):
        leaves = [dynamic.tensor(a, requires_grad=True) for a in arrays[:2]]
        y = f(*leaves, **attrs)
        grads = dynamic.autograd.grad(y, leaves, dynamic.tensor(arrays[2]).reshape(y.shape))
        return [y.detach().numpy().reshape(shape), *(z.numpy() for z in grads)]

    wanted = found(whole)
    for threads in (1, 2):
        dynamic.set_num_threads(threads)
        try:
            for a, b in zip(found(F.conv2d), wanted, strict=True):
                assert_same_bits(a, b)
        finally:
            dynamic.set_num_threads(1)


def chain(columns, rows):
    """Sums of products that are zero or underflow, in order: the sign of the last one that is not an exact zero."""
    total = np.zeros((len(rows), columns.shape[1]), np.float32)
    for column, row in zip(columns.astype(np.float64), rows.T.astype(np.float64), strict=True):
        product = row[:, None] * column
        total = np.where(product != 0, product.astype(np.float32), product.astype(np.float32) + total)
    return total


@pytest.mark.parametrize("signs", [(-1, -1), (-1, 1), (1, -1)])
def test_a_sum_that_underflows_before_the_padding_has_the_sign_of_products_with_zeros(signs):
    """-0.0 from products of numbers becomes +0.0 by a product of a zero outside and a positive weight."""
    rng = np.random.default_rng(0)
    n, c, o, h, w = 4, 16, 48, 5, 8
    x = rng.random((n, c, h, w)).astype(np.float32) * np.float32(1e-30)
    weights = rng.random((o, c, 3, 3)).astype(np.float32) * np.float32(1e-30)
    weights[:, :, :2] *= signs[0]
    weights[:, :, 2] *= signs[1]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    columns = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).transpose(1, 4, 5, 0, 2, 3)
    a, b = (dynamic.tensor(v, requires_grad=True) for v in (x, weights))
    y = F.conv2d(a, b, padding=1)
    wanted = chain(columns.reshape(c * 9, -1), weights.reshape(o, -1)).reshape(o, n, h, w).transpose(1, 0, 2, 3)
    assert_same_bits(y.detach().numpy(), np.ascontiguousarray(wanted))
    assert np.signbit(wanted).all() == (signs == (-1, -1))


def test_a_gradient_that_underflows_before_the_padding_has_the_sign_of_products_with_zeros():
    """The same of the weights: windows at the bottom, with zeros below, come last."""
    rng = np.random.default_rng(1)
    n, c, o, h, w = 1, 16, 48, 20, 32  # several blocks of windows
    x = rng.random((n, c, h, w)).astype(np.float32) * np.float32(1e-30)
    g = rng.random((n, o, h, w)).astype(np.float32) * np.float32(1e-30)
    g[:, :, :-1] *= -1
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    columns = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).transpose(0, 2, 3, 1, 4, 5)
    columns, rows = columns.reshape(h * w, -1), g[0].reshape(o, -1)
    wanted = sum(chain(columns[p : p + 256], rows[:, p : p + 256]) for p in range(0, h * w, 256))
    b = dynamic.tensor(np.zeros((o, c, 3, 3), np.float32), requires_grad=True)
    (found,) = dynamic.autograd.grad(F.conv2d(dynamic.tensor(x), b, padding=1), [b], dynamic.tensor(g))
    assert_same_bits(found.numpy(), wanted.reshape(o, c, 3, 3))
