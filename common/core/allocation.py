"""Results that do not fit into memory: recognising such errors, and their message."""

from __future__ import annotations

from math import prod

from common.core.errors import AllocationError

#: numpy's words where a result would have more than 64 dimensions.
_MANY_DIMENSIONS = ("aximum supported dimension", "number of dimensions must be within")


def too_large(error: BaseException) -> bool:
    """Whether an error says that an array would not fit into memory, or into the numbers that describe it."""
    words = ("array is too big", "aximum allowed dimension", "too large to convert", *_MANY_DIMENSIONS)
    if isinstance(error, KeyError):  # whose text may be endless
        return False
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)


def allocation_error(name: str, error: BaseException) -> AllocationError:
    """The error for a result that does not fit into memory."""
    told: object = "it has more bytes than 64 bits can count" if isinstance(error, OverflowError) else error
    if any(word in str(error) for word in _MANY_DIMENSIONS):
        told = f"it has more than the 64 dimensions that an array can have ({error})"
    refusal = AllocationError(f"{name}(): the result does not fit into memory: {told}")
    refusal.__cause__ = error
    return refusal


#: Elements of an operand, of which only expanded ones have so many: an op would take minutes and cannot be interrupted.
MOST_ELEMENTS = 1 << 36
#: Rows that are gone through, a tensor each, and numbers of a range: only expanded tensors have more.
MOST_ROWS = 1 << 30


def refuse_endless(name: str, shape: tuple[int, ...], most: int = MOST_ELEMENTS) -> None:
    """Refuse to go through an operand of more elements than any memory holds.

    Raises
    ------
    AllocationError : it has more than `most`.
    """
    if (count := prod(shape)) > most:
        raise AllocationError(f"{name}(): an operand of shape {shape} has {count} elements, more than the "
                              f"{most} that an op goes through; reduce it before it is expanded")  # fmt: skip
