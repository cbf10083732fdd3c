"""Settings of every test run: repeatable random programs, a compiler cache of the checkout's own."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# A run of the tests leaves nothing outside the checkout, and the second run finds its kernels again.
os.environ.setdefault("TWINGRAD_CACHE", str(ROOT / ".pytest_cache" / "twingrad"))

# No deadline: the first example of a program compiles it. Derandomised in CI: a red run can be repeated.
settings.register_profile("developer", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("developer"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "developer")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse names that differ between two runs: workers in parallel could not agree on them."""
    if " at 0x" in item.nodeid:
        raise pytest.UsageError(f"{item.nodeid}: give this test's parameters ids without addresses")
