"""Gate: backward passes of composite functions store nothing on the way, and stay near PyTorch."""

from typing import Any

import pytest

from benchmarks import backward_passes
from benchmarks.gates.frame import record

BOUND = 1.3
#: Arrays at the peak where it takes more than the gradient: what flows between two nodes, or to two operands.
ARRAYS = {"cross_entropy": 2}


@pytest.mark.parametrize("name", backward_passes.FUNCTIONS)
def test_backward(benchmark: Any, name: str) -> None:
    found = backward_passes.find(name)
    benchmark.extra_info.update(found._asdict())
    record(benchmark, backward_passes.backward("dynamic", name), [()])
    assert found.arrays <= ARRAYS.get(name, 1) + 0.1
    if found.theirs is not None:
        assert found.ours <= BOUND * found.theirs, f"{found.ours / found.theirs:.2f} of PyTorch's time"
