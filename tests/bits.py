"""The one comparison of the tests: two arrays are the same if dtype, shape and every bit are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.bits import difference


def assert_same_bits(actual: Any, expected: Any, what: str) -> None:
    """Fail with `what` (the op), the first differing element, its index and both values in hex.

    Every NaN equals every other; -0.0 and +0.0 differ.
    """
    found = difference(actual, expected)
    assert found is None, f"{what}: {found}"


def assert_all_same_bits(actual: Sequence[Any], expected: Sequence[Any], what: str) -> None:
    """The same for sequences of arrays, in which None equals None."""
    assert len(actual) == len(expected), f"{what}: {len(actual)} results against {len(expected)}"
    for position, (a, b) in enumerate(zip(actual, expected, strict=True)):
        assert (a is None) == (b is None), f"{what}, result {position}: {a} against {b}"
        if a is not None:
            assert_same_bits(a, b, f"{what}, result {position}")
