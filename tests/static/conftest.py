import pytest

from static.running import store


@pytest.fixture
def disk(fresh_cache):
    """A folder that holds the programs of this test only."""
    store._package()
    return fresh_cache
