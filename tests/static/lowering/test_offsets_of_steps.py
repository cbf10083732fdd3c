"""Elements a few places apart that begin behind others: written out by rows, at an index, in a scan."""

import numpy as np
import pytest

import static
from tests.bits import assert_same_bits

INDEX = static.tensor([3, 0, 2, 2])


def joined(x, step, offset):
    """Rows of a few elements, turned, behind the others in a part of the result."""
    rows = x.shape[0]
    turned = x.reshape(rows, step, -1).transpose(1, 2)
    return static.cat((x * 2, turned.reshape(rows, -1)), 1)


def indexed(x, step, offset):
    return x[:, offset::step].exp()[INDEX], x[:, offset::step][INDEX] * 2


def added(x, step, offset):
    return x.clone()[:, offset::step].index_add(0, INDEX, x[:4, offset::step])


def scanned(x, step, offset):
    return static.scan(lambda c, y: (c * 0.5 + y, c * y), static.zeros(()), x.reshape(-1)[offset::step])[1]


@pytest.mark.parametrize("program", [joined, indexed, added, scanned], ids=lambda f: f.__name__)
@pytest.mark.parametrize("step", [2, 3, 4, 8])
@pytest.mark.parametrize("rows", [5, 64])
def test_the_offset_is_kept(program, step, rows):
    for offset in range(step):
        x = static.tensor(np.random.default_rng(0).normal(size=(rows, 80 * step)).astype(np.float32))
        want, got = program(x, step, offset), static.function(lambda x, o=offset: program(x, step, o))(x)
        for a, b in zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]:
            assert_same_bits(a, b, f"{program.__name__}, step {step}, from {offset}")


def tokens_and_back(x):
    """Channels last and first again, as blocks of attention over images have it, behind the image itself."""
    image = static.nn.functional.conv2d(x, WEIGHT)
    rows = image.reshape(160, 2, 1, 2).transpose(1, 2).reshape(2, 80, 1, 4).transpose(1, 3).reshape(8, 1, 80)
    back = rows.contiguous().view(2, 4, 1, 80).transpose(1, 3).reshape(160, 1, 2, 2).transpose(1, 2)
    return static.cat((image, back.reshape(2, 80, 2, 2)), 1)


WEIGHT = static.tensor(np.random.default_rng(1).normal(size=(80, 40, 1, 1)).astype(np.float32))


def test_turned_rows_in_a_part_of_a_result_begin_behind_the_other():
    x = static.tensor(np.random.default_rng(0).normal(size=(2, 40, 2, 2)).astype(np.float32))
    compiled = static.function(tokens_and_back)
    for _ in range(3):
        assert_same_bits(tokens_and_back(x), compiled(x), "image and tokens")
