"""Whether the processor computes with subnormal numbers."""

import sys

__all__ = ["flushes"]

_SMALLEST_NORMAL = sys.float_info.min


def flushes() -> bool:
    """Whether arithmetic of the calling thread flushes subnormal numbers to zero, whoever has asked for it."""
    return _SMALLEST_NORMAL * 0.5 == 0.0
