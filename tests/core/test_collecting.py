"""Python's cyclic collector rests while programs are made, and works afterwards, whatever overlaps."""

import gc
from contextlib import ExitStack

import pytest

from common.core.garbage import collecting_later, collecting_now


@pytest.fixture(params=[True, False])
def state(request):
    """The user's own setting."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_blocks_may_overlap_as_those_of_threads_do(state):
    first, second = ExitStack(), ExitStack()
    first.enter_context(collecting_later())
    second.enter_context(collecting_later())
    assert not gc.isenabled()
    first.close()
    assert not gc.isenabled()
    second.close()
    assert gc.isenabled() is state


def test_a_search_collects_inside_a_trace(state):
    with collecting_later():
        with collecting_now():
            assert gc.isenabled()
        assert not gc.isenabled()
    with pytest.raises(ZeroDivisionError), collecting_later():
        _ = 1 / 0
    assert gc.isenabled() is state


def test_a_search_that_outlives_the_trace_leaves_the_collector_on():
    trace, search = ExitStack(), ExitStack()
    trace.enter_context(collecting_later())
    search.enter_context(collecting_now())
    trace.close()
    search.close()
    assert gc.isenabled()
