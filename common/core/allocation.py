"""Results that do not fit into memory: recognising such errors, refusing them, and their message."""

from __future__ import annotations

from contextlib import suppress
from math import inf, prod
from pathlib import Path

from common.core.errors import AllocationError, TwingradError

#: numpy's words where a result would have more than 64 dimensions.
_MANY_DIMENSIONS = ("aximum supported dimension", "number of dimensions must be within")


def too_large(error: BaseException) -> bool:
    """Whether an error says that an array would not fit into memory, or into the numbers that describe it."""
    words = ("array is too big", "aximum allowed dimension", "too large to convert", *_MANY_DIMENSIONS)
    if isinstance(error, (KeyError, TwingradError)):  # a text that may be endless; one that says it already
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


#: From as many bytes on, an array is compared with the memory that is free: to ask takes 50 us, to fill one 50 ms.
LARGE = 1 << 28


def refuse_beyond_memory(name: str, nbytes: int) -> None:
    """Refuse an array that the machine has no memory for: Linux hands it out, and ends the process that fills it.

    Raises
    ------
    AllocationError : it has at least `LARGE` bytes, and more than are free.
    """
    if nbytes >= LARGE and nbytes > (free := free_memory()):
        told = f"can't allocate memory: you tried to allocate {nbytes} bytes, {free:.0f} are free"
        raise AllocationError(f"{name}(): the result does not fit into memory: {told}")


def free_memory() -> float:
    """Bytes that this process can get, on Linux: of the machine and of its control group; else infinity."""
    found = inf
    with suppress(OSError, ValueError, KeyError):
        lines = (line.split() for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
        machine = {words[0]: int(words[1]) * 1024 for words in lines}
        found = machine["MemAvailable:"] + machine["SwapFree:"]
    with suppress(OSError, ValueError, StopIteration):  # not in a group of its own, or one without a limit
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        group = Path("/sys/fs/cgroup") / next(line[3:] for line in groups if line.startswith("0::")).lstrip("/")
        most, used = (int((group / f"memory.{what}").read_text(encoding="ascii")) for what in ("max", "current"))
        lines = (line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
        found = min(found, most - used + next(int(words[1]) for words in lines if words[0] == "inactive_file"))
    return found


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
