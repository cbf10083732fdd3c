"""The disk cache of object code: content-addressed, checksummed, bounded, safe against concurrent writers.

One file per entry, named by the key: magic, SHA-256 of the rest, length of the names, names, object code.
A file is written under a temporary name and renamed, so a reader sees all of it or none; two processes that
write one key write the same bytes.  Whatever goes wrong costs a compilation and one warning, never an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

MAGIC = b"twingrd1"
SUFFIX = ".kernel"
LIMIT_BYTES = 512 * 2**20
PRUNE_EVERY = 32  # stores, on average
STALE_SECONDS = 3600.0
TOUCH_SECONDS = 86400.0

_warned = False


class Entry(NamedTuple):
    """Object code, the function to call in it, and the symbols that must be known before it is loaded."""

    symbol: str
    externals: tuple[str, ...]
    code: bytes


def directory() -> Path:
    """Return the cache directory: ``TWINGRAD_CACHE``, or ``twingrad`` in the user's cache folder."""
    chosen = os.environ.get("TWINGRAD_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "twingrad"


def read(key: str) -> Entry | None:
    """Return an entry; None if there is none, or if it was damaged (it is removed)."""
    try:
        path = directory() / (key + SUFFIX)
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        _warn(f"cannot read the kernel cache ({error})")
        return None
    entry = unpack(data)
    if entry is None:
        _warn(f"damaged entry {path} in the kernel cache; it is compiled again")
        _remove(path)
        return None
    _touch(path)
    return entry


def write(key: str, entry: Entry) -> None:
    """Store an entry; a failure is a warning, once per process."""
    temporary = None
    try:
        folder = directory()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = folder / f"{key}.{os.urandom(8).hex()}.tmp"
        temporary.write_bytes(pack(entry))
        temporary.replace(folder / (key + SUFFIX))
    except (OSError, RuntimeError) as error:
        _warn(f"cannot write to the kernel cache ({error}); kernels are compiled in each process")
        if temporary is not None:
            _remove(temporary)
        return
    # The key is uniform, so no counter has to be shared between processes.
    if int(key[:4], 16) % PRUNE_EVERY == 0:
        prune(folder)


def pack(entry: Entry) -> bytes:
    """Return the bytes of an entry."""
    names = "\n".join((entry.symbol, *entry.externals)).encode()
    body = len(names).to_bytes(4, "little") + names + entry.code
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> Entry | None:
    """Return an entry from its bytes, None if the checksum or the format is wrong."""
    body = data[40:]
    if data[:8] != MAGIC or len(body) < 4 or hashlib.sha256(body).digest() != data[8:40]:
        return None
    end = 4 + int.from_bytes(body[:4], "little")
    symbol, *externals = body[4:end].decode().split("\n")
    return Entry(symbol, tuple(externals), body[end:])


def prune(folder: Path, limit: int = LIMIT_BYTES) -> None:
    """Remove the least recently used entries beyond `limit` bytes, and forgotten temporary files."""
    entries, now = [], time.time()
    try:
        with os.scandir(folder) as files:
            for file in files:
                status = file.stat()
                if file.name.endswith(SUFFIX):
                    entries.append((status.st_mtime, status.st_size, file.path))
                elif file.name.endswith(".tmp") and now - status.st_mtime > STALE_SECONDS:
                    _remove(Path(file.path))
    except OSError:  # another process is pruning too
        return
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            break
        _remove(Path(path))
        total -= size


class Usage(NamedTuple):
    """How much is kept: entries and bytes."""

    entries: int
    nbytes: int


def usage() -> Usage:
    """Count what the cache holds; nothing if there is none."""
    sizes = [path.stat().st_size for path in directory().glob("*" + SUFFIX)]
    return Usage(len(sizes), sum(sizes))


def clear() -> Usage:
    """Remove all entries and temporary files and return what the entries were; other files are left alone."""
    held = usage()
    for suffix in (SUFFIX, ".tmp"):
        for path in directory().glob("*" + suffix):
            _remove(path)
    return held


def _touch(path: Path) -> None:
    """Mark an entry as used, at most once a day: the order of removal needs no more."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > TOUCH_SECONDS:
            os.utime(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


def _warn(message: str) -> None:
    global _warned
    if _warned:
        return
    _warned = True
    from common.errors import TwingradCacheWarning

    warnings.warn(message, TwingradCacheWarning, stacklevel=2)
