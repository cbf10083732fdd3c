"""Compositions that nobody thought of: joined kernels, shared memory, calls of equal and of other sizes."""

import pytest

from tests.helpers.compositions import check
from tests.helpers.proofs import first

EACH = 12


@pytest.mark.parametrize("part", first(6, range(20), core=1))
def test_random_compositions_of_ops(part):
    for seed in range(part * EACH, part * EACH + EACH):
        check(seed)
