"""Convolutions in one kernel have the bits of products of whole columns, which never are in memory."""

import os
import subprocess
import sys
import tracemalloc
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import dynamic
import static
from common.compiler import llvm_engine
from tests.kernels.run import assert_same_bits

F = dynamic.nn.functional
rng = np.random.default_rng(0)
# panels have 48 columns, four of them lie together; blocks of inner products are 256 long
CASES = [
    ((3, 4, 9, 9), (6, 2, 3, 3), {"stride": 2, "padding": 1, "groups": 2}),
    ((4, 40, 8, 8), (20, 40, 3, 3), {"padding": 1}),  # inner sizes of two blocks; panels of several images
    ((5, 300, 4, 4), (9, 300, 1, 1), {}),
    ((2, 24, 33, 31), (12, 6, 3, 2), {"stride": (1, 2), "padding": (2, 1), "dilation": (2, 3), "groups": 4}),
    ((2, 3, 6, 6), (300, 3, 3, 3), {"stride": 2, "padding": 1}),  # two blocks in the gradient of the images
    ((1, 3, 40, 21), (2, 3, 7, 7), {"stride": 3, "padding": 2}),
    ((20, 2, 2, 2), (3, 2, 3, 3), {"padding": 1}),
    ((1, 2, 1, 400), (3, 2, 1, 5), {"padding": (0, 4), "dilation": 3}),
    # windows side by side in copies of images: in strips of rows, in parts of a row, several images, of groups
    ((2, 24, 60, 60), (10, 24, 3, 3), {"padding": 1}),
    ((1, 30, 1, 1500), (9, 30, 1, 9), {"padding": (0, 4), "stride": (1, 2)}),
    ((5, 30, 8, 8), (40, 30, 3, 3), {"padding": 1}),
    ((1, 6, 90, 61), (5, 6, 7, 7), {"stride": (2, 3), "padding": (3, 4)}),
    ((2, 6, 50, 50), (8, 3, 3, 3), {"stride": 2, "padding": (2, 1), "dilation": (1, 3), "groups": 2}),
    # channels whose gradients are sums of products place by place, with gaps and without, with few columns left
    ((2, 9, 34, 48), (40, 9, 3, 3), {"padding": (0, 1)}),
    ((2, 16, 21, 27), (50, 8, 3, 5), {"padding": (1, 3), "dilation": (3, 1), "groups": 2}),
    ((1, 8, 1, 2000), (40, 8, 1, 3), {"padding": (0, 1)}),
    ((5, 17, 30, 35), (33, 17, 3, 3), {"padding": 1, "stride": 2}),
    ((1, 12, 70, 64), (25, 12, 4, 4), {"stride": (2, 3), "dilation": (1, 2)}),
    # one row of weights per group: 16 chains, in registers up to 64 places, else in blocks of 512 windows
    ((2, 3, 21, 18), (3, 1, 4, 4), {"stride": 2, "padding": 2, "groups": 3}),
    ((1, 3, 37, 70), (3, 1, 5, 5), {"padding": (3, 1), "dilation": 2, "groups": 3}),
    ((2, 4, 9, 9), (2, 2, 2, 2), {"stride": (3, 1), "groups": 2}),
    ((3, 4, 9, 9), (4, 1, 3, 3), {"padding": 1, "groups": 4}),
    ((2, 2, 40, 33), (2, 1, 5, 7), {"stride": 2, "padding": 3, "groups": 2}),
    ((2, 2, 30, 43), (2, 1, 7, 7), {"padding": 3, "dilation": 2, "groups": 2}),
    ((1, 2, 19, 43), (2, 1, 8, 8), {"stride": (3, 2), "groups": 2}),
    ((1, 2, 19, 43), (2, 1, 9, 9), {"padding": 4, "groups": 2}),
    ((2, 40, 6, 6), (1, 40, 3, 3), {"stride": 3, "padding": 1}),
    ((2, 2, 1, 700), (2, 1, 1, 5), {"padding": (0, 2), "groups": 2}),
    # copies of several small images, of which the padding is most
    ((4, 128, 8, 8), (32, 128, 3, 3), {"padding": 18, "dilation": 18}),
    ((4, 64, 8, 8), (40, 64, 3, 3), {"padding": 24, "dilation": 24}),
    ((4, 128, 16, 16), (9, 128, 3, 3), {"padding": 36, "dilation": 36, "stride": 2}),
]


def whole(x, w, stride=1, padding=0, dilation=1, groups=1):
    """The product of the weights and all columns."""
    n, o = x.shape[0], w.shape[0] // groups
    columns = F.unfold(x, w.shape[2:], dilation=dilation, padding=padding, stride=stride)
    columns = columns.permute(1, 0, 2).reshape(groups, w[0].numel(), -1)
    y = w.reshape(groups, o, -1) @ columns
    return y.reshape(groups * o, n, -1).permute(1, 0, 2)


def results(f, leaves, cotangent):
    y = f(*leaves)
    grads = dynamic.autograd.grad(y, leaves, dynamic.tensor(cotangent).reshape(y.shape))
    return [z.detach().numpy().tobytes() for z in (y, *grads)]


@pytest.mark.parametrize(
    ("x", "w", "attrs", "dtype"),
    [
        pytest.param(*case, dtype, marks=[pytest.mark.slow] * ((number + wide) % 2))
        for number, case in enumerate(CASES)
        for wide, dtype in enumerate(("float32", "float64"))
    ],
)
def test_one_kernel_has_the_bits_of_whole_columns(x, w, attrs, dtype):
    leaves = [dynamic.tensor(rng.normal(size=size).astype(dtype), requires_grad=True) for size in (x, w)]
    cotangent = rng.normal(size=F.conv2d(*leaves, **attrs).shape).astype(dtype)
    ours = results(lambda x, w: F.conv2d(x, w, **attrs), leaves, cotangent)
    assert ours == results(lambda x, w: whole(x, w, **attrs), leaves, cotangent)


@pytest.mark.parametrize("size", [2, 3, 4, 8, 9])
def test_zeros_have_the_signs_of_whole_columns(size):
    """Products round to -0.0; chains that a product with one row has are added to +0.0."""
    for (o, groups), padding in product(((2, 1), (2, 2)), (0, 1)):
        for places in ((9, 20), (7 + size, 15 + size)):
            x = np.full((1, 2, *places), 1e-30, np.float32)
            w = np.full((o, 2 // groups, size, size), -1e-30, np.float32)
            leaves = [dynamic.tensor(v, requires_grad=True) for v in (x, w)]
            attrs = {"padding": padding, "groups": groups}
            cotangent = np.full(F.conv2d(*leaves, **attrs).shape, -1e-30, np.float32)
            ours = results(lambda x, w, attrs=attrs: F.conv2d(x, w, **attrs), leaves, cotangent)
            assert ours == results(lambda x, w, attrs=attrs: whole(x, w, **attrs), leaves, cotangent)


@pytest.mark.parametrize(("x", "w", "attrs"), CASES)
def test_convolutions_are_sums_over_windows_and_their_gradients_adjoint(x, w, attrs):
    x, w = (rng.normal(size=size) for size in (x, w))
    a, b = (dynamic.tensor(v, requires_grad=True) for v in (x, w))
    y = F.conv2d(a, b, **attrs)
    (sh, sw), (ph, pw), (dh, dw) = (
        (v, v) if isinstance(v, int) else v for v in (attrs.get(k, i) for k, i in (("stride", 1), ("padding", 0),
        ("dilation", 1)))
    )  # fmt: skip
    groups, (o, c, kh, kw) = attrs.get("groups", 1), w.shape
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (dh * (kh - 1) + 1, dw * (kw - 1) + 1), (2, 3))
    windows = windows[:, :, ::sh, ::sw, ::dh, ::dw]
    for g in range(groups):
        own = slice(g * o // groups, (g + 1) * o // groups)
        wanted = np.einsum("nchwyx,ocyx->nohw", windows[:, g * c : (g + 1) * c], w[own], optimize=True)
        np.testing.assert_allclose(y.detach().numpy()[:, own], wanted, rtol=1e-11, atol=1e-11)
    v = rng.normal(size=y.shape)
    dx, dw = dynamic.autograd.grad(y, [a, b], dynamic.tensor(v))
    total = (y.detach().numpy() * v).sum()
    assert (dx.numpy() * x).sum() == pytest.approx(total, rel=1e-10)
    assert (dw.numpy() * w).sum() == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("factor", [np.inf, -1e-30, 0.0])
@pytest.mark.parametrize("padding", [0, 1, 4])
def test_what_lies_outside_is_not_added(factor, padding):
    """An infinite weight times nothing would be NaN, and a sum that begins with -0.0 would keep its sign."""
    leaves = [dynamic.tensor(np.full(size, factor, np.float32), requires_grad=True) for size in (
        (2, 3, 9, 20), (3, 1, 3, 3))]  # fmt: skip
    cotangent = np.full(F.conv2d(*leaves, padding=padding, groups=3).shape, -1e-30, np.float32)

    def gradient(f):
        y = f(*leaves, padding=padding, groups=3)
        return dynamic.autograd.grad(y, leaves[0], dynamic.tensor(cotangent).reshape(y.shape))[0].numpy()

    assert_same_bits(gradient(F.conv2d), gradient(whole))


@pytest.mark.parametrize("weight", [np.inf, -np.inf, np.nan])
def test_a_weight_that_is_not_finite_is_not_multiplied_with_what_lies_outside(weight):
    """Only places that windows with this weight reach have a gradient that is not finite."""
    x = dynamic.tensor(rng.normal(size=(1, 9, 18, 16)), requires_grad=True)
    w = rng.normal(size=(32, 9, 3, 3))
    w[5, 1, 0, 0] = weight
    y = F.conv2d(x, dynamic.tensor(w), padding=1)
    (dx,) = dynamic.autograd.grad(y, [x], dynamic.tensor(rng.normal(size=y.shape)))
    wanted = np.ones((9, 18, 16), bool)
    wanted[1, :-1, :-1] = False
    assert (np.isfinite(dx.numpy()[0]) == wanted).all()


SHARED = [
    ((6, 16, 56, 56), (16, 16, 3, 3), {}),
    ((6, 16, 56, 56), (16, 8, 3, 3), {"groups": 2, "stride": 2}),
    ((6, 16, 56, 56), (16, 1, 3, 3), {"groups": 16}),
    ((2, 3, 64, 60), (64, 3, 7, 7), {"stride": 2}),  # strips of images
    ((8, 70, 8, 8), (60, 70, 3, 3), {}),  # swaths of windows
    ((3, 32, 30, 32), (40, 32, 3, 3), {}),  # strips of the gradient of images too
    ((3, 32, 31, 30), (40, 32, 3, 3), {"stride": 2}),
    ((1, 140, 6, 6), (132, 140, 3, 3), {}),  # rows of the weights, and channels of images
]


@pytest.mark.parametrize(("x", "w", "attrs"), SHARED)
def test_threads_share_a_convolution(x, w, attrs):
    sizes = x, w, w[:1]
    leaves = [dynamic.tensor(rng.normal(size=size).astype(np.float32), requires_grad=True) for size in sizes]
    cotangent = rng.normal(size=F.conv2d(*leaves, padding=1, **attrs).shape).astype(np.float32)

    def run():
        return results(lambda *z: F.conv2d(*z, padding=1, **attrs), leaves, cotangent)

    alone = run()
    try:
        for threads in (2, 3):
            dynamic.set_num_threads(threads)
            assert run() == alone
    finally:
        dynamic.set_num_threads(1)


def test_an_element_does_not_depend_on_other_images():
    x, w = rng.normal(size=(7, 5, 6, 6)).astype(np.float32), rng.normal(size=(4, 5, 3, 3)).astype(np.float32)
    whole = F.conv2d(dynamic.tensor(x), dynamic.tensor(w)).numpy()
    parts = [F.conv2d(dynamic.tensor(x[i : i + 1]), dynamic.tensor(w)).numpy() for i in range(7)]
    assert whole.tobytes() == np.concatenate(parts).tobytes()


def test_no_columns_in_memory():
    x = dynamic.tensor(rng.normal(size=(8, 16, 48, 48)).astype(np.float32), requires_grad=True)
    w = dynamic.tensor(rng.normal(size=(16, 16, 5, 5)).astype(np.float32), requires_grad=True)

    def run():
        F.conv2d(x, w, padding=2).sum().backward()

    run()
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 7 * x.nbytes  # columns would take 25


def test_gradients_of_each_example_have_its_bits():
    x, w = rng.normal(size=(3, 2, 4, 5, 5)).astype(np.float32), rng.normal(size=(3, 6, 2, 3, 3)).astype(np.float32)

    def gradients(module):
        def loss(x, w):
            return module.nn.functional.conv2d(x, w, padding=1, groups=2).sin().sum()

        return module.grad(loss, argnums=(0, 1))

    for module in (dynamic, static):
        together = module.vmap(gradients(module))(module.tensor(x), module.tensor(w))
        shared = module.vmap(gradients(module), in_dims=(0, None))(module.tensor(x), module.tensor(w[0]))
        for i in range(3):
            alone = gradients(dynamic)(dynamic.tensor(x[i]), dynamic.tensor(w[i]))
            with_first = gradients(dynamic)(dynamic.tensor(x[i]), dynamic.tensor(w[0]))
            for many, one in ((together, alone), (shared, with_first)):
                assert [a[i].numpy().tobytes() for a in many] == [b.numpy().tobytes() for b in one]


def test_new_sizes_are_not_compiled():
    f = static.function(lambda x, w: static.nn.functional.conv2d(x, w, padding=1))
    w = rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    for n, size in ((2, 5), (3, 9), (40, 7)):
        x = rng.normal(size=(n, 3, size, size)).astype(np.float32)
        assert f(x, w).numpy().tobytes() == F.conv2d(dynamic.tensor(x), dynamic.tensor(w), padding=1).numpy().tobytes()
    assert len(f.traces) == 1


_ELSEWHERE = """
import hashlib
from tests.kernels.test_convolution_blocks import CASES, F, dynamic, np, results
found, rng = hashlib.sha256(), np.random.default_rng(3)
for x, w, attrs in CASES:
    leaves = [dynamic.tensor(rng.normal(size=size).astype(np.float32), requires_grad=True) for size in (x, w)]
    cotangent = rng.normal(size=F.conv2d(*leaves, **attrs).shape).astype(np.float32)
    for part in results(lambda x, w: F.conv2d(x, w, **attrs), leaves, cotangent):
        found.update(part)
print(found.hexdigest())
"""


@pytest.mark.slow
def test_bits_do_not_depend_on_the_instruction_set(tmp_path):
    """Panels of 48, 24 and 8 columns."""
    kinds = [{}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}]
    if "+fma" in llvm_engine.cpu()[1].split(","):
        kinds.append({"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"})
    digests = {
        subprocess.run(
            [sys.executable, "-c", _ELSEWHERE], cwd=Path(__file__).parents[2], capture_output=True, text=True,
            check=True, env={**os.environ, "TWINGRAD_CACHE": str(tmp_path), **kind},
        ).stdout for kind in kinds
    }  # fmt: skip
    assert len(digests) == 1


VOLUMES = [
    ((2, 8, 8, 16, 16), (16, 8, 3, 3, 3), {"padding": 1}),
    ((1, 6, 5, 40, 33), (10, 3, 2, 3, 3), {"padding": (1, 0, 2), "stride": (2, 1, 2), "groups": 2}),
    ((2, 90, 6, 8, 8), (5, 90, 3, 2, 2), {"dilation": (2, 1, 2), "padding": (3, 1, 1)}),
    ((3, 4, 7, 20, 9), (6, 4, 1, 3, 3), {"padding": (2, 1, 1), "stride": (3, 1, 1)}),
    ((2, 5, 9, 6, 1), (4, 5, 4, 3, 1), {"padding": (5, 0, 0)}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("x", "w", "attrs"), VOLUMES)
def test_convolutions_of_volumes_have_the_bits_of_whole_columns(x, w, attrs, dtype):
    a, b = (rng.normal(size=size).astype(dtype) for size in (x, w))
    a[rng.random(x) < 0.1] = -0.0
    stride, padding, dilation = ((v,) * 3 if isinstance(v := attrs.get(n, d), int) else v
                                 for n, d in (("stride", 1), ("padding", 0), ("dilation", 1)))  # fmt: skip
    groups, reach = attrs.get("groups", 1), [d * (k - 1) + 1 for d, k in zip(dilation, w[2:], strict=True)]
    around = np.pad(a, [(0, 0), (0, 0), *((p, p) for p in padding)])
    windows = np.lib.stride_tricks.sliding_window_view(around, reach, (2, 3, 4))
    windows = windows[:, :, :: stride[0], :: stride[1], :: stride[2], :: dilation[0], :: dilation[1], :: dilation[2]]
    n, c, *count = windows.shape[:5]
    columns = windows.reshape(n, groups, c // groups, *count, -1).transpose(1, 2, 6, 0, 3, 4, 5)
    columns = np.ascontiguousarray(columns).reshape(groups, w[1] * b[0, 0].size, -1)
    expected = dynamic.tensor(b).reshape(groups, w[0] // groups, -1) @ dynamic.tensor(columns)
    expected = np.asarray(expected).reshape(w[0], n, *count).swapaxes(0, 1)
    for engine in (dynamic, static):
        found = engine.function(lambda x, w, e=engine: e.nn.functional.conv3d(x, w, **attrs))(a, b)
        assert_same_bits(np.asarray(found), np.ascontiguousarray(expected))
