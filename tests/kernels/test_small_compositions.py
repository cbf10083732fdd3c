"""Kernels of small compositions in the eager engine: the bits of their ops in the compiled one, and numpy's values."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def results(tw, f, arrays, g):
    """What f returns, its gradients for a cotangent, and those of a function of them."""

    def first(*x):
        return tw.grad(lambda *x: (f(tw, *x) * g).sum(), tuple(range(len(x))))(*x)

    def program(*x):
        second = tw.grad(lambda *x: sum(y.sin().sum() for y in first(*x)), tuple(range(len(x))))
        return (f(tw, *x), *first(*x), *second(*x))

    return tw.function(program)(*arrays)


def check(f, of_ops, arrays, rtol, zeros=2):
    """Both engines have the bits of the ops written one by one, in forward and gradient."""
    rng = np.random.default_rng(1)
    shape = np.asarray(f(dynamic, *map(dynamic.tensor, arrays))).shape
    g = rng.standard_normal(shape).astype(arrays[0].dtype)
    g.reshape(-1)[:zeros] = -0.0
    expected = results(static, of_ops, arrays, g)
    for tw in (dynamic, static):
        for _ in range(2):
            found = results(tw, f, arrays, g)
            assert_all_same_bits(found[: 1 + len(arrays)], expected[: 1 + len(arrays)], "values and gradients")
            for x, y in zip(found, expected, strict=True):
                np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=rtol)
    g.reshape(-1)[:2] = -0.0
    assert_all_same_bits(results(static, f, arrays, g), results(dynamic, f, arrays, g), "both engines, all derivatives")
    return found


@DTYPES
@pytest.mark.parametrize(("shape", "dim"), [((391, 256), 1), ((4, 6), 0), ((2, 8, 3), 1), ((2,), 0), ((10, 10), -1)])
def test_gated_halves(shape, dim, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    n = shape[dim] // 2

    def of_ops(tw, x):
        return x.narrow(dim, 0, n) * tw.sigmoid(x.narrow(dim, n, n))

    check(lambda tw, x: tw.nn.functional.glu(x, dim), of_ops, [x], 1e-4 if dtype == np.float32 else 1e-12)


@DTYPES
@pytest.mark.parametrize(("shape", "dim"), [((333, 3), 1), ((3, 40), 0), ((2, 3, 5), 1), ((3,), 0)])
def test_cross_products(shape, dim, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for _ in range(2))

    def of_ops(tw, a, b):
        (a0, a1, a2), (b0, b1, b2) = ([x.select(dim, i) for i in range(3)] for x in (a, b))
        return tw.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], dim)

    rtol = 1e-4 if dtype == np.float32 else 1e-12
    found = check(lambda tw, a, b: tw.cross(a, b, dim=dim), of_ops, [a, b], rtol, zeros=0)
    np.testing.assert_allclose(np.asarray(found[0]), np.cross(a, b, axis=dim), rtol=rtol, atol=rtol)


@DTYPES
@pytest.mark.parametrize(
    ("shape", "pad"),
    [((2, 8, 7, 7), (1, 1, 1, 1)), ((2, 5), (3, 0)), ((2, 3, 9), (2, 4)), ((2, 2, 4, 5, 6), (1, 2, 0, 3, 2, 1))],
)
def test_reflected_borders(shape, pad, dtype):
    """An element that both borders repeat gets them in one order; one that none repeats gets no negative zero."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)

    def of_ops(tw, x):
        for i in range(0, len(pad), 2):
            dim, (before, after) = x.ndim - 1 - i // 2, pad[i : i + 2]
            n = x.shape[dim]
            parts = [x.narrow(dim, 1, before).flip(dim), x, x.narrow(dim, n - 1 - after, after).flip(dim)]
            x = tw.cat([p for p, size in zip(parts, (before, 1, after), strict=True) if size], dim)
        return x

    found = check(lambda tw, x: tw.nn.functional.pad(x, pad, mode="reflect"), of_ops, [x], 1e-5)
    widths = [(0, 0)] * (len(shape) - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    np.testing.assert_array_equal(np.asarray(found[0]), np.pad(x, widths, mode="reflect"))


@DTYPES
@pytest.mark.parametrize(
    ("shape", "pad"),
    [((2, 8, 7, 7), (1, 1, 1, 1)), ((2, 5), (3, 0)), ((2, 3, 9), (0, 40)), ((2, 2, 4, 1, 6), (1, 2, 20, 3, 2, 1))],
)
def test_replicated_borders(shape, pad, dtype):
    """An end gets the sum of the border behind before that of the one in front."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)

    def of_ops(tw, x):
        for i in range(0, len(pad), 2):
            dim, (before, after) = x.ndim - 1 - i // 2, pad[i : i + 2]
            parts = []
            for start, size in ((0, before), (None, 1), (x.shape[dim] - 1, after)):
                wide = tuple(size if d == dim else n for d, n in enumerate(x.shape))
                if size:
                    parts.append(x if start is None else x.narrow(dim, start, 1).expand(*wide))
            x = tw.cat(parts, dim)
        return x

    found = check(lambda tw, x: tw.nn.functional.pad(x, pad, mode="replicate"), of_ops, [x], 1e-5)
    widths = [(0, 0)] * (len(shape) - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    np.testing.assert_array_equal(np.asarray(found[0]), np.pad(x, widths, mode="edge"))
    given, g = dynamic.tensor(x, requires_grad=True), dynamic.tensor(np.pad(x[..., ::-1], widths, mode="wrap"))
    of_pad, of_parts = (
        dynamic.autograd.grad(f(given), given, g)
        for f in (lambda x: dynamic.nn.functional.pad(x, pad, mode="replicate"), lambda x: of_ops(dynamic, x))
    )
    assert_all_same_bits(of_pad, of_parts, "gradients that nothing records")


def test_operands_of_other_layouts_and_dtypes():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((6, 40))
    turned, plain = dynamic.tensor(x).t(), dynamic.tensor(np.ascontiguousarray(x.T))
    glu, pad = dynamic.nn.functional.glu, dynamic.nn.functional.pad
    for _ in range(3):
        assert_all_same_bits([glu(turned)], [glu(plain)], "glu")
        for mode in ("reflect", "replicate"):
            assert_all_same_bits([pad(turned, (2, 1), mode=mode)], [pad(plain, (2, 1), mode=mode)], mode)
    assert dynamic.cross(dynamic.tensor([1, 0, 0]), dynamic.tensor([0, 1, 0])).tolist() == [0, 0, 1]
    assert pad(dynamic.tensor([1, 2, 3]), (2, 1), mode="reflect").tolist() == [3, 2, 1, 2, 3, 2]
    assert pad(dynamic.tensor([1, 2, 3]), (2, 1), mode="replicate").tolist() == [1, 1, 1, 2, 3, 3]


@DTYPES
@pytest.mark.parametrize("shapes", [((5, 3), (2, 4)), ((1, 1), (3, 3)), ((30, 20), (7, 9)), ((2, 3), (4,))])
def test_kronecker_products(shapes, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes)

    def of_ops(tw, a, b):
        b = b.reshape((1,) * (2 - b.ndim) + tuple(b.shape))
        product = a.reshape(-1, 1) * b.reshape(1, -1)
        apart = product.reshape(*a.shape, *b.shape).permute(0, 2, 1, 3)
        return apart.reshape(a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])

    found = check(lambda tw, a, b: tw.kron(a, b), of_ops, [a, b], 1e-4 if dtype == np.float32 else 1e-12)
    np.testing.assert_array_equal(np.asarray(found[0]), np.kron(a, b))


@DTYPES
@pytest.mark.parametrize(("shape", "r"), [((2, 8, 5, 6), 2), ((9, 3, 4), 3), ((1, 2, 4, 7, 3), 2)])
def test_shuffled_pixels(shape, r, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    *lead, c, h, w = shape
    apart = np.moveaxis(x.reshape(*lead, c // r**2, r, r, h, w), (-4, -3), (-3, -1))
    expected = apart.reshape(*lead, c // r**2, h * r, w * r)

    def of_ops(tw, x):
        n = len(lead)
        return (
            x.reshape(*lead, c // r**2, r, r, h, w)
            .permute(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
            .reshape(*lead, c // r**2, h * r, w * r)
        )

    found = check(lambda tw, x: tw.nn.functional.pixel_shuffle(x, r), of_ops, [x], 1e-6)
    np.testing.assert_array_equal(np.asarray(found[0]), expected)
    back = dynamic.nn.functional.pixel_unshuffle(dynamic.tensor(expected), r)
    np.testing.assert_array_equal(back.numpy(), x)


@DTYPES
@pytest.mark.parametrize(("shape", "dim"), [((391, 256), 1), ((5, 7), 0), ((7,), 0), ((1,), 0), ((3, 2000), -1)])
def test_products_of_others(shape, dim, dtype):
    """Also where one element, or two, are 0; running products of float32 are held in float64."""
    rng = np.random.default_rng(0)
    x = (1 + 0.1 * rng.standard_normal(shape)).astype(dtype)
    x.reshape(-1)[: 2 * (x.size > 4)] = 0
    front = np.moveaxis(x, dim, -1)

    def running(x):
        y = np.cumprod(x.astype(np.float64), -1).astype(dtype)
        return np.concatenate([np.ones_like(y[..., :1]), y[..., :-1]], -1)

    expected = np.moveaxis(running(front) * running(front[..., ::-1])[..., ::-1], -1, dim)
    for tw in (dynamic, static):
        f = tw.function(tw.grad(lambda x, tw=tw: tw.prod(x, dim).sum()))
        for _ in range(2):
            assert_all_same_bits([f(x)], [expected], f"{shape}")


@DTYPES
def test_clamp_is_a_minimum_of_a_maximum(dtype):
    """For bounds of every kind, numbers and elements: zeros of both signs, nan, in the wrong order."""
    tiny = np.finfo(dtype).smallest_subnormal
    values = [0.0, -0.0, 1.0, -1.0, tiny, -tiny, np.inf, -np.inf, np.nan, 0.5]
    x, low, high = (a.ravel().astype(dtype) for a in np.meshgrid(values, values, values))
    for tw in (dynamic, static):
        expected = tw.function(lambda x, a, b, tw=tw: tw.minimum(tw.maximum(x, a), b))(x, low, high)
        assert_all_same_bits([tw.function(lambda x, a, b, tw=tw: tw.clamp(x, a, b))(x, low, high)], [expected], "clamp")
    for a in values:
        for b in values:
            line = np.array(values, dtype)
            expected = dynamic.minimum(dynamic.maximum(dynamic.tensor(line), dtype(a)), dtype(b))
            assert_all_same_bits([dynamic.clamp(dynamic.tensor(line), float(a), float(b))], [expected], f"{a}, {b}")


@DTYPES
@pytest.mark.parametrize(("shape", "dim"), [((391, 256), 1), ((4, 6), 0), ((2, 8, 3), 1), ((1,), 0), ((10, 10), -1)])
@pytest.mark.parametrize("by", [1, -1, 3, 0, 12345])
def test_turned_dimensions(shape, dim, by, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    n = shape[dim]

    def of_ops(tw, x):
        return tw.cat([x.narrow(dim, n - by % n, by % n), x.narrow(dim, 0, n - by % n)], dim)

    found = check(lambda tw, x: tw.roll(x, by, dim), of_ops, [x], 1e-12 if dtype == np.float64 else 1e-4, 0)
    assert_all_same_bits([found[0]], [np.roll(x, by, dim)], "numpy's")


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool"])
def test_turned_dimensions_of_other_dtypes_and_without_elements(dtype):
    x = (np.arange(60).reshape(3, 4, 5) % 7).astype(dtype)
    for shape, dim in (((3, 4, 5), 1), ((0, 3), 0), ((0, 3), 1), ((3, 0), 1)):
        y = x.reshape(shape) if 0 not in shape else np.zeros(shape, dtype)
        for _ in range(14):
            found = dynamic.roll(dynamic.tensor(y), 2, dim).numpy()
        assert found.dtype == y.dtype
        assert found.tolist() == np.roll(y, 2, dim).tolist()
    assert dynamic.roll(dynamic.tensor(x).transpose(0, 2), 1, 0).tolist() == np.roll(x.T, 1, 0).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_parts_that_lie_in_larger_arrays_are_joined(dtype):
    rng = np.random.default_rng(0)
    for shape, dim, cuts in (
        ((300, 70), 1, (3, 40)),
        ((40, 5, 90), 1, (2, 3)),
        ((5000, 4), 1, (1, 2)),
        ((90, 80), 0, (7, 60)),
    ):
        x = (rng.standard_normal(shape) * 50).astype(dtype)
        parts = np.split(x, cuts, dim)
        turned = [parts[i] for i in (2, 0, 1)]
        found = dynamic.cat([dynamic.tensor(x).split([p.shape[dim] for p in parts], dim)[i] for i in (2, 0, 1)], dim)
        assert found.numpy().tobytes() == np.concatenate(turned, dim).tobytes()
        flipped = dynamic.cat([dynamic.tensor(x).transpose(0, -1), dynamic.tensor(x).transpose(0, -1)], 0)
        assert flipped.numpy().tobytes() == np.concatenate([x.swapaxes(0, -1)] * 2, 0).tobytes()
