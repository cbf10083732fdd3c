"""Compiled functions notice what changes in modules between their calls: they have the eager engine's bits."""

import pytest

from tests.helpers.changing_modules import check
from tests.helpers.proofs import first

EACH = 4


@pytest.mark.parametrize("part", first(5, range(20), core=1))
def test_random_changes_of_modules_between_calls(part):
    for seed in range(part * EACH, part * EACH + EACH):
        check(seed)
