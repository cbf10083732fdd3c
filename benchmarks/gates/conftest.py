"""Settings of the gates, ``python3 -m pytest benchmarks``: one core, one thread, peers may warn."""

import pytest

from benchmarks.measure import single_core

CORE = single_core()  # before a peer starts its thread pools


def pytest_configure(config: pytest.Config) -> None:
    """Let the peers warn: what they say about themselves is not ours to fix."""
    for line in (
        "ignore:::torch",
        "ignore:::jax",
        "ignore:.*record_function",
        "ignore:Benchmark fixture was not used",  # by a test that failed before: that failure says more
    ):
        config.addinivalue_line("filterwarnings", line)
