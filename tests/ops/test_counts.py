"""`repeat_interleave` by one count per element, against numpy."""

import numpy as np
import pytest

import dynamic
from common.core.errors import AllocationError, ShapeError
from tests.bits import assert_all_same_bits


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_each_element_as_often_as_its_count_says(n, dtype):
    rng = np.random.default_rng(n)
    x, counts = rng.standard_normal((n, 3)).astype(np.float32), rng.integers(0, 5, 2 * n).astype(dtype)
    wide = dynamic.tensor(counts)
    for given, each in ((dynamic.tensor(counts[:n]), counts[:n]), (wide[::2], counts[::2])):
        found = dynamic.repeat_interleave(dynamic.tensor(x), given, 0)
        assert_all_same_bits([found], [np.repeat(x, each, 0)], f"{n} {dtype}")
    if n:
        one = dynamic.tensor(np.array([3], dtype))
        assert_all_same_bits([dynamic.repeat_interleave(dynamic.tensor(x), one, 0)], [np.repeat(x, 3, 0)], "one count")


def test_counts_that_are_none():
    x = dynamic.ones(3)
    with pytest.raises(ShapeError, match="can not be negative"):
        dynamic.repeat_interleave(x, dynamic.tensor([2, -1, 2]))
    with pytest.raises(ShapeError, match="same size as input"):
        dynamic.repeat_interleave(x, dynamic.tensor([1, 2]))
    for many in ([2**40, 0, 1], [2**39, 1, 0], [2**62, 2**62, 2**62], [2**63 - 1, 2**63 - 1, 2]):
        with pytest.raises(AllocationError, match=r"repeat_interleave\(\): the result does not fit into memory"):
            dynamic.repeat_interleave(x, dynamic.tensor(many))
