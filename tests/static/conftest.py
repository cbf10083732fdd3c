import pytest

from static.running import program_store


@pytest.fixture
def disk(fresh_cache):
    """A folder that holds the programs of this test only."""
    program_store._package()
    return fresh_cache
