"""A cheap sign that nothing has changed since the environment of kernels was hashed.

Like Python's own bytecode files it trusts size and time of modification, and for the processor what Linux says of it.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

HASHED = ("compiler", "runtime", "kernels", "ops")
"""Folders of this package whose files decide what a kernel's text means."""

APART = {
    "common": ("api", "convert", "data", "distributions", "nn", "optim", "parallel", "tools"),
    "static": ("api", "cuda", "export", "nn", "optim", "signal", "tools", "utils"),
}
"""Folders whose files make graphs, or use programs, and no program out of a graph: a third of all files."""

_REPEATABLE = 2  # the version of marshal whose bytes do not depend on which objects are shared
_CPU_LINES = (b"vendor_id", b"cpu family", b"model", b"stepping", b"flags", b"CPU ", b"Features")


Mark = tuple[str, int, int]
"""A file, its size, and when it was modified last."""

_hashed: dict[str, list[Mark]] = {}
"""Files of `HASHED`, by their folder, as this process found them first."""


def hashed_files() -> list[Mark]:
    """The files that decide what a kernel's text means, in a fixed order."""
    package = Path(__file__).parent.parent
    found = {folder: _python_files(folder, _hashed) for folder in [str(package / name) for name in HASHED]}
    _hashed.update(found)
    return [_mark(package / "core" / "numerics.py"), *(mark for marks in found.values() for mark in marks)]


def package_files() -> list[Mark]:
    """All files that make programs out of graphs, in a fixed order, and the one that tells networkx's version."""
    hashed_files()
    home = Path(__file__).parent.parent.parent
    spec = find_spec("networkx")
    known = _hashed | {str(home / name / room): [] for name, rooms in APART.items() for room in rooms}
    found = [mark for name in APART for mark in _python_files(str(home / name), known)]
    return [*found, *([_mark(spec.origin)] if spec and spec.origin else [])]


def _python_files(folder: str, known: Mapping[str, list[Mark]] | None = None) -> list[Mark]:
    """The modules in a folder and in those within it; half of the time that `os.walk` takes."""
    if known and folder in known:
        return known[folder]
    marks, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                marks.append((entry.path, status.st_size, status.st_mtime_ns))
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                folders.append(entry.path)
    return [*sorted(marks), *(mark for path in sorted(folders) for mark in _python_files(path, known))]


def stamp(files: Sequence[Mark]) -> str | None:
    """Return the key under which a hash of files and environment is kept; None where the processor is not known."""
    cpu = _cpu()
    if cpu is None:
        return None
    parts = [sys.version, np.__version__, cpu, os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")]
    versions = [_mark(path) for path in (version_file("numba"), version_file("llvmlite"))]
    return hashlib.sha256(marshal.dumps((parts, *files, *versions), _REPEATABLE)).hexdigest()


def _mark(path: Path | str | None) -> Mark:
    try:
        status = os.stat(path) if path is not None else None  # noqa: PTH116  a Path takes three times as long
    except OSError:
        status = None
    return (str(path), -1, -1) if status is None else (str(path), status.st_size, status.st_mtime_ns)


@cache
def version_file(name: str) -> Path | None:
    """The file that an installation of another version rewrites."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).with_name("_version.py")


@cache
def _cpu() -> bytes | None:
    """Linux's description of the first processor, without its present speed."""
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            text, end, _ = file.read(16384).partition(b"\n\n")
    except OSError:
        return None
    return b"\n".join(line for line in text.splitlines() if line.startswith(_CPU_LINES)) if end else None
