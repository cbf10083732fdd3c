"""Gate: eager ops on a million elements take at most 1.2 (exact) or 3 (costly) of PyTorch eager's time."""

from typing import Any

import pytest

from benchmarks.elements import DTYPES, MISSES, elements, measured, summary
from benchmarks.gate import record


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements(benchmark: Any, dtype: str) -> None:
    """At most a tenth of the calls may miss; docs/benchmarks.md says which do, and why."""
    rows = list(measured(elements(), dtype))
    benchmark.extra_info["ratios"] = {row.label: row.ratio for row in rows}
    record(benchmark, lambda: None, [()])
    missed = [row for row in rows if row.missed]
    assert len(missed) <= MISSES * len(rows), summary(rows)
