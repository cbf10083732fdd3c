"""Threads that meet ops, views, compiled functions and gradients first at the same time."""

import pytest

from tests.helpers.cold_threads import in_new_process


@pytest.mark.parametrize("seed", range(3))
def test_threads_of_a_new_process_give_the_bits_of_one(seed):
    assert in_new_process(seed) == ""
