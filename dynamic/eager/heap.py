"""Keeps freed memory in the process, because memory that comes anew from the system costs more than most operations.

The C library of Linux gives what is free at the end of its heap back to the system whenever that is more than twice the
largest array freed so far, so that a program of large intermediate results touches new pages in every step. A page of
4 kB costs 0.25 to 2 us then, an addition of its elements 0.2. PyTorch and numpy have the same costs.
"""

import ctypes
import os

KEPT_BYTES = 256 << 20
"""Bytes of free memory that may stay in the process."""
LARGEST_BYTES = 16 << 20
"""Larger arrays are mapped, and unmapped when they are freed; numpy asks for pages of 2 MB there, which are cheap."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_CHOICES_OF_USERS = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES"


def keep_freed_memory() -> bool:
    """Let glibc keep up to :data:`KEPT_BYTES` of free memory; return whether it does.

    Nothing changes where another C library is in use, or if the environment already tells this one what to keep.
    Source: mallopt(3).
    """
    if any(name in os.environ for name in _CHOICES_OF_USERS) or not _is_glibc():
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_BYTES) and mallopt(_TRIM_THRESHOLD, KEPT_BYTES))


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, ValueError, OSError):  # not a POSIX system, or another C library
        return False
