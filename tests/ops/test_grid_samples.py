"""Images at places of a grid: kernels of the eager engine have the bits of the ops, in every derivative."""

from itertools import product

import numpy as np
import pytest

import dynamic
import static
from common.kernels.arrays import grid_samples
from common.ops.image.grid_samples import interpolated
from tests.bits import assert_all_same_bits
from tests.helpers.wrapped import wrap

WAYS = list(product(("bilinear", "nearest"), ("zeros", "border", "reflection"), (False, True)))
SHAPES = [
    (2, 3, 5, 6, 4, 7), (1, 1, 1, 1, 3, 3), (1, 2, 1, 4, 2, 2), (2, 17, 4, 5, 20, 30), (1, 1100, 3, 2, 2, 3),
    (2, 3, 2, 5, 6, 4, 7, 1), (1, 1, 1, 4, 1, 2, 1, 2), (2, 17, 3, 4, 5, 3, 10, 20), (1, 1100, 2, 3, 2, 1, 2, 3),
]  # fmt: skip
"""Batch, channels, sizes of the image, sizes of the result."""
STRANGE = [np.nan, np.inf, -np.inf, 1e30, -1e20, -1.0, 1.0, -0.0]


def _arrays(shape, dtype, seed=0, strange=True):
    """An image, a grid that leaves it, a cotangent; with NaN, infinities and zeros of both signs."""
    rng = np.random.default_rng(seed)
    batch, channels, *both = shape
    n = len(both) // 2
    sizes, places = both[:n], both[n:]
    x = rng.normal(size=(batch, channels, *sizes)).astype(dtype)
    grid = rng.uniform(-2, 2, (batch, *places, n)).astype(dtype)
    g = rng.normal(size=(batch, channels, *places)).astype(dtype)
    if channels < 4 and strange:
        grid.flat[rng.integers(0, grid.size, len(STRANGE))] = STRANGE
        x.flat[rng.integers(0, x.size, 2)] = np.nan, -0.0
        g.flat[rng.integers(0, g.size, 2)] = -0.0, np.inf
    return x, grid, g


def _found(sample, arrays, wanted=(0, 1)):
    x, grid, g = arrays
    given = [wrap(a, requires_grad=i in wanted) for i, a in enumerate((x, grid))]
    y = sample(*given)
    return [y.detach().numpy(), *(t.numpy() for t in dynamic.autograd.grad(y, [given[i] for i in wanted], wrap(g)))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_bits_are_those_of_ops(shape, dtype):
    arrays = _arrays(shape, dtype)
    halved = slice(None) if len(shape) == 6 else slice(dtype == "float64", None, 2)  # kernels take long to compile
    for mode, padding, align in WAYS[halved]:
        served = grid_samples.serves(padding, align, arrays[0].shape, arrays[1].shape)
        assert served == (not (padding == "reflection" and align and 1 in arrays[0].shape[2:]))

        def sample(x, grid, mode=mode, padding=padding, align=align):
            return dynamic.nn.functional.grid_sample(x, grid, mode, padding, align)

        def by_ops(x, grid, mode=mode, padding=padding, align=align):
            return interpolated(x, grid, mode, padding, align)

        for wanted in ((0, 1), (0,), (1,)):
            assert_all_same_bits(_found(sample, arrays, wanted), _found(by_ops, arrays, wanted), f"{mode} {padding}")
        turned = [np.asfortranarray(a) for a in arrays]
        assert_all_same_bits(_found(sample, turned), _found(by_ops, arrays), f"{mode} {padding}, in another order")


@pytest.mark.parametrize(
    "shape", [(0, 2, 3, 3, 2, 2), (1, 0, 3, 3, 2, 2), (1, 2, 3, 3, 0, 2), (1, 2, 3, 3, 2, 2, 0, 2)]
)
def test_nothing_is_read_of_nothing(shape):
    arrays = [np.ones_like(a) for a in _arrays(shape, np.float32, strange=False)]
    sizes = [a.shape for a in arrays]
    y, x, grid = _found(lambda x, grid: dynamic.nn.functional.grid_sample(x, grid, align_corners=False), arrays)
    assert (y.shape, x.shape, grid.shape) == (sizes[2], sizes[0], sizes[1])
    assert not y.size
    assert not x.any()
    assert not grid.any()


@pytest.mark.parametrize("shape", [(2, 5, 4, 6, 3, 4), (2, 5, 3, 2, 4, 2, 3, 1)])
@pytest.mark.parametrize(
    ("mode", "padding", "align"), [("bilinear", "zeros", False), ("bilinear", "reflection", False)]
)
def test_later_derivatives_are_those_of_the_compiled_program(mode, padding, align, shape):
    """What flows back from results and from first gradients is added up at the places of the ops."""
    arrays = _arrays(shape, "float32")

    def program(tw):
        def value(x, grid):
            y = tw.nn.functional.grid_sample(x, grid, mode, padding, align)
            return (y * y).sum()

        def penalty(x, grid):
            return sum((g * g).sum() for g in tw.func.grad(value, (0, 1))(x, grid)) + value(x, grid)

        def found(x, grid, t):
            turned = tw.func.jvp(lambda grid: tw.func.grad(value)(x, grid), (grid,), (t,))[1]
            return (*tw.func.grad(penalty, (0, 1))(x, grid), turned)

        return found

    given = arrays[0], arrays[1], np.cos(arrays[1])
    eager = program(dynamic)(*map(wrap, given))
    compiled = static.function(program(static))(*given)
    assert_all_same_bits([x.numpy(force=True) for x in (*eager,)], [x.numpy(force=True) for x in compiled], mode)


def test_gradients_of_leaves_agree_with_the_compiled_ones():
    """`create_graph` and then `backward`, with the value in the same loss, keeps node, hooks and order."""
    x, grid, _ = _arrays((2, 5, 4, 6, 3, 4), "float32")

    def penalised(sample):
        leaves = [wrap(x, requires_grad=True), wrap(grid, requires_grad=True)]
        y = sample(*leaves)
        seen = []
        y.register_hook(seen.append)
        first = dynamic.autograd.grad((y * y).sum(), leaves, create_graph=True)
        (sum((g * g).sum() for g in first) + y.sum()).backward()
        assert len(seen) == 2
        return [t.grad.numpy() for t in leaves] + [t.detach().numpy() for t in first]

    kernels = penalised(lambda x, grid: dynamic.nn.functional.grid_sample(x, grid, align_corners=False))
    assert_all_same_bits(kernels, penalised(lambda x, grid: interpolated(x, grid, "bilinear", "zeros", False)), "ops")


def test_nodes_are_named_by_dimensions():
    for shape, name in (((1, 1, 2, 2, 2, 2), "GridSampler2D"), ((1, 1, 2, 2, 2, 2, 2, 2), "GridSampler3D")):
        x, grid, _ = _arrays(shape, "float32", strange=False)
        given = wrap(x, requires_grad=True), wrap(grid)
        for mode in ["bilinear"] * 20 + ["nearest"]:  # the first calls are not those that the engine remembers
            y = dynamic.nn.functional.grid_sample(*given, mode, align_corners=False)
            assert y.grad_fn.name() == f"{name}Backward0"
