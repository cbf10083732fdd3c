"""Results that do not fit into memory: how such errors are recognised and what is said of them."""

from __future__ import annotations

from common.errors import AllocationError


def too_large(error: BaseException) -> bool:
    """Whether an error says that an array would not fit into memory, or into the numbers that describe it."""
    words = ("array is too big", "aximum allowed dimension", "aximum supported dimension", "too large to convert")
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)


def allocation_error(name: str, error: BaseException) -> AllocationError:
    """The error for a result that does not fit into memory."""
    told = "it has more bytes than 64 bits can count" if isinstance(error, OverflowError) else error
    refusal = AllocationError(f"{name}(): the result does not fit into memory: {told}")
    refusal.__cause__ = error
    return refusal
