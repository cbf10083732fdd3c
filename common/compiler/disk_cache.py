"""The disk cache of object code: content-addressed, checksummed, bounded, safe against concurrent writers.

One file per entry, named by the key: magic, SHA-256 of the key and of the rest, length of the names, names, object
code. An entry under another's name is therefore a damaged one. A file is written under a temporary name and renamed, so
a reader sees all of it or none; two processes that write one key write the same bytes. What the cache holds is run, so
only a folder and files that nobody but their owner, who is the process's user, can write to are used. Whatever goes
wrong costs a compilation and one warning, never an error.

*Ready-made* entries follow from the package and the machine alone: products, sorts, sums of rows, what calls them. They
lie beside the package, where its bytecode does, so that a program with a cache of its own finds them, too. Where this
process may not write there, they are entries like all others.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

from common.core.source_lines import warn_user

MAGIC = b"twingrd2"
SUFFIX = ".kernel"
LIMIT_BYTES = 512 * 2**20
READY_MADE_BYTES = 64 * 2**20
PRUNE_EVERY = 512  # stores, on average: it asks for the size of every entry; 512 entries are some 3 MB
STALE_SECONDS = 3600.0
TOUCH_SECONDS = 86400.0

_warned: set[str] = set()
"""Kinds of warnings that this process has given; each is given once."""


class Entry(NamedTuple):
    """Object code, the function to call in it, and the symbols that must be known before it is loaded."""

    symbol: str
    externals: tuple[str, ...]
    code: bytes


_apart = True
given: dict[str, Entry] = {}
"""Entries that are not of the cache: those of files of programs, of which a user said that their code may be run."""


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


@cache
def ready_made_directory() -> Path | None:
    """Return where ready-made entries lie; None if this process may not write there, or somebody else may."""
    folder = Path(__file__).parent / "__pycache__" / "kernels"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if os.access(folder, os.W_OK) and distrusted(folder.stat()) is None else None
    except OSError:
        return None


def keep_together() -> None:
    """Let ready-made entries be entries of the cache in this process, so that it holds all that a program needs."""
    global _apart
    _apart = False


def is_apart() -> bool:
    """Whether ready-made entries of this process are not entries of the cache."""
    return _apart


def _folder(ready_made: bool) -> Path:
    return (ready_made_directory() if ready_made and _apart else None) or directory()


def distrusted(status: os.stat_result) -> str | None:
    """Why what a file or folder holds is not to be run: somebody else can write to it; None if nobody can."""
    if not hasattr(os, "geteuid"):  # Windows keeps a user's folders from other users
        return None
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, and this process runs as user {os.geteuid()}"
    writers = [who for who, bit in (("its group", stat.S_IWGRP), ("all users", stat.S_IWOTH)) if status.st_mode & bit]
    return f"{' and '.join(writers)} may write to it" if writers else None


def _is_used(folder: Path) -> bool:
    """Whether the cache's folder is one that nobody else can write to; the first that is not is reported.

    Raises
    ------
    FileNotFoundError : there is no such folder yet.
    """
    reason = distrusted(os.stat(folder))  # noqa: PTH116  a Path takes twice as long, and each read asks
    if reason is None:
        return True
    mend = "`chmod go-w` it" if "may write" in reason else "name a folder of your own in TWINGRAD_CACHE"
    _warn(
        "folder",
        f"the kernel cache in {folder} is not used: {reason}, but the machine code in it would be run; {mend}. Kernels "
        "are compiled in each process until then",
    )
    return False


def read(key: str, ready_made: bool = False) -> Entry | None:
    """Return an entry; None if there is none, or if it was damaged or is somebody else's (it is removed)."""
    if key in given:
        return given[key]
    try:
        folder = _folder(ready_made)
        path = folder / (key + SUFFIX)
        if not _is_used(folder):
            return None
        with open(path, "rb", opener=_at_once) as file:
            reason = distrusted(os.fstat(file.fileno()))
            data = b"" if reason is not None else file.read()
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        _warn("access", f"cannot read the kernel cache ({error})")
        return None
    entry = unpack(key, data)
    if entry is None:
        told = "damaged entry" if reason is None else "entry that is not used, because " + reason + ":"
        _warn("entry", f"{told} {path} in the kernel cache; it is compiled again")
        _remove(path)
        return None
    _touch(path)
    return entry


def _at_once(path: str, flags: int) -> int:
    """Open a file; what is none, as a pipe, has nothing to read, and is not waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _private(path: str, flags: int) -> int:
    """Make a file that nobody else can read or write."""
    return os.open(path, flags, 0o600)


def write(key: str, entry: Entry, ready_made: bool = False) -> None:
    """Store an entry; a failure is a warning, once per process."""
    temporary = None
    try:
        folder = _folder(ready_made)
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_used(folder):
            return
        temporary = folder / f"{key}.{os.urandom(8).hex()}.tmp"
        with open(temporary, "xb", opener=_private) as file:
            file.write(pack(key, entry))
        temporary.replace(folder / (key + SUFFIX))
    except (OSError, RuntimeError) as error:
        _warn("access", f"cannot write to the kernel cache ({error}); kernels are compiled in each process")
        if temporary is not None:
            _remove(temporary)
        return
    # The key is uniform, so no counter has to be shared between processes.
    if int(key[:4], 16) % PRUNE_EVERY == 0:
        prune(folder, READY_MADE_BYTES if folder == ready_made_directory() else LIMIT_BYTES)


def pack(key: str, entry: Entry) -> bytes:
    """Return the bytes of an entry, which belong to its key."""
    names = "\n".join((entry.symbol, *entry.externals)).encode()
    body = len(names).to_bytes(4, "little") + names + entry.code
    return MAGIC + _checksum(key, body) + body


def unpack(key: str, data: bytes) -> Entry | None:
    """Return the entry of a key from its bytes, None if the checksum or the format is wrong."""
    body = data[40:]
    if data[:8] != MAGIC or len(body) < 4 or _checksum(key, body) != data[8:40]:
        return None
    end = 4 + int.from_bytes(body[:4], "little")
    symbol, *externals = body[4:end].decode().split("\n")
    return Entry(symbol, tuple(externals), body[end:])


def _checksum(key: str, body: bytes) -> bytes:
    digest = hashlib.sha256(key.encode() + b"\0")
    digest.update(body)
    return digest.digest()


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


def folders() -> dict[Path, int]:
    """Where entries lie, and the bytes to which each folder is pruned: the cache, and what is ready-made."""
    beside = ready_made_directory()
    return {directory(): LIMIT_BYTES} | ({} if beside is None else {beside: READY_MADE_BYTES})


def usage(folder: Path) -> Usage:
    """Count what a folder holds; nothing if there is none."""
    sizes = [path.stat().st_size for path in folder.glob("*" + SUFFIX)]
    return Usage(len(sizes), sum(sizes))


def clear(folder: Path) -> Usage:
    """Remove all entries and temporary files of a folder and return what the entries were; others are left alone."""
    held = usage(folder)
    for suffix in (SUFFIX, ".tmp"):
        for path in folder.glob("*" + suffix):
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


def _warn(kind: str, message: str) -> None:
    if kind in _warned:
        return
    _warned.add(kind)
    from common.core.errors import TwingradCacheWarning

    warn_user(message, TwingradCacheWarning)
