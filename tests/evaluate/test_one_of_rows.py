"""One element of each row where rows lie in steps: as of a copy in order, and as numpy takes it."""

import numpy as np
import pytest

import dynamic
import dynamic.nn.functional as F
from common.core.errors import TwingradError
from common.ops.index.gather import pick
from common.ops.loss.classes import nll_
from tests.bits import assert_all_same_bits

#: Views whose last dimension was another one before, and others, and how many are in a row.
VIEWS = [
    lambda x: x.permute(0, 2, 3, 1), lambda x: x.permute(1, 2, 3, 0), lambda x: x.permute(0, 1, 3, 2),
    lambda x: x.permute(3, 2, 1, 0), lambda x: x.flip(0).permute(0, 2, 3, 1), lambda x: x[:, ::2].permute(0, 2, 3, 1),
    lambda x: x[:1, :, :1].expand(2, -1, 30, -1), lambda x: x[:1, :, :1, :1].permute(0, 2, 3, 1), lambda x: x,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("at", range(len(VIEWS)))
def test_rows_are_read_where_they_lie(at, dtype):
    rng = np.random.default_rng(at)
    given = rng.integers(0, 100, (2, 5, 30, 40)).astype(dtype)
    if given.dtype.kind == "f":
        given[0, 1], given[1, 2] = np.nan, -0.0
    x = VIEWS[at](dynamic.tensor(given))
    index = rng.integers(0, x.shape[-1], tuple(x.shape[:-1]))
    expected = np.take_along_axis(x.numpy(), index[..., None], -1)[..., 0]
    for _ in range(3):
        for taken in (dynamic.tensor(index), dynamic.tensor(index.T.copy()).permute(*reversed(range(index.ndim)))):
            assert_all_same_bits([pick(x, taken)], [expected], f"view {at}")
            if given.dtype.kind == "f":  # a composite reads rows where they lie
                np.full(expected.shape, 7, dtype)  # the memory of the last result is the next one's
                assert_all_same_bits([nll_(x, taken, ignore=-100)], [-expected], f"losses of view {at}")


@pytest.mark.parametrize("wrong", [5, -1, 1 << 40])
def test_a_wrong_index_is_told_as_of_a_copy(wrong):
    x = dynamic.ones(2, 5, 3000)
    index = np.zeros((2, 3000), np.int64)
    index[1, 2999] = wrong
    told = []
    for rows in (x.permute(0, 2, 1), x.permute(0, 2, 1).contiguous()):
        with pytest.raises(TwingradError) as raised:
            nll_(rows, dynamic.tensor(index), ignore=-100)
        told.append(str(raised.value).splitlines()[0])
    assert told[0] == told[1]
    assert str(wrong) in told[0] or wrong > 1 << 24


def test_losses_of_images():
    rng = np.random.default_rng(1)
    x, index = rng.standard_normal((3, 4, 50, 60)).astype(np.float32), rng.integers(0, 4, (3, 50, 60))
    expected = -np.take_along_axis(x, index[:, None], 1)[:, 0]
    for _ in range(14):
        found = F.nll_loss(dynamic.tensor(x), dynamic.tensor(index), reduction="none")
        assert_all_same_bits([found], [expected], "losses")
    none = F.nll_loss(dynamic.ones(3, 4, 0, 60), dynamic.tensor(index[:, :0]), reduction="none")
    assert tuple(none.shape) == (3, 0, 60)
