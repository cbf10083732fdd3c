"""Values that are put together are made where they lie in those that are put together of them."""

import numpy as np
import pytest

import static as tw
from tests.static.compare import assert_compiles

F = tw.nn.functional


def floats(*shape):
    return np.random.default_rng(6).standard_normal(shape).astype(np.float32)


def blocks(x):
    upper, lower = tw.cat((x, x[:, :2]), 1), tw.cat((x[:, 1:], x[:, :3]), 1)
    return tw.cat((upper, lower), 0)


def longer(x):
    return tw.cat((x[:1], x, x[1:2]), 0)


def within(x):
    y = x.reshape(-1, x.shape[-1]).clone()
    y[1:4] = y[:3]
    read = tw.cat((y[2:], x[0, :2]), 0) + 1
    y.index_copy_(0, tw.tensor([0, 5]), x[1, :2])
    return read, y


def around(i, x):
    return F.pad(x[:, None], (1, 1, 1, 1), mode="circular")[:, 0, 1:-1, :-2] * 2


def padded(mode, pad):
    return lambda x: F.pad(x[:, None], pad, mode=mode)


PADS = (1, 2, 3, 0), (2, 2, 2, 2), (0, 1, 2, 3)
PROGRAMS = {
    **{f"{mode} {pad}": padded(mode, pad) for mode in ("reflect", "replicate", "circular") for pad in PADS},
    "three dimensions": lambda x: F.pad(x[None, None], (1, 2, 2, 1, 1, 1), mode="replicate"),
    "blocks of a matrix": lambda x: blocks(x.reshape(x.shape[0] * x.shape[1], -1)),
    "what is inside is returned, too": lambda x: (lambda y: (y, tw.cat((y[:, 1:2], y, y[:, :1]), 1)))(longer(x)),
    "what is inside is read by a sum": lambda x: (lambda y: tw.cat((y[:, 1:2], y, y[:, :1]), 1) * y.sum())(longer(x)),
    "twice": lambda x: (lambda y: tw.cat((y, y), 1))(longer(x)),
    "a row of what is inside": lambda x: (lambda y: tw.cat((y, y[:1, :1].expand(y.shape[0], 2, -1)), 1))(longer(x)),
    "whose parts have been read": within,
    "among numbers": lambda x: F.pad(longer(x), (0, 0, 2, 1)),
    "with a gradient": lambda x: tw.grad(lambda x: (F.pad(x[:, None], (2, 1, 1, 2), mode="reflect") ** 2).sum())(x),
    "and what is made of it": lambda x: F.pad(x[:, None], (2, 1, 1, 2), mode="replicate").relu() + 1,
    "in a loop": lambda x: tw.fori_loop(0, 3, around, x),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_stay(name):
    assert_compiles(PROGRAMS[name], (floats(3, 5, 6),), (floats(2, 7, 4),))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_rows_of_a_padded_image_are_not_copied_to_it(mode):
    compiled = tw.function(lambda x: F.pad(x, (2, 2, 2, 2), mode=mode))
    found = np.asarray(compiled(floats(2, 3, 40, 30)))
    names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    pairs = [(0, 0), (0, 0), (2, 2), (2, 2)]
    np.testing.assert_array_equal(found, np.pad(floats(2, 3, 40, 30), pairs, mode=names[mode]))
    assert compiled.explain().arena_bytes == 0
    assert sum(kernel.writes for kernel in compiled.explain().kernels) <= 1.05 * found.nbytes
