"""A cheap sign that nothing has changed since the environment of kernels was hashed.

Like Python's own bytecode files it trusts size and time of modification, and for the processor what Linux says of it.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

HASHED = ("native", "kernels", "ops")
"""Folders of this package whose files decide what a kernel's text means."""

_CPU_LINES = (b"vendor_id", b"cpu family", b"model", b"stepping", b"flags", b"CPU ", b"Features")


def hashed_files() -> list[Path]:
    """The files that decide what a kernel's text means, in a fixed order."""
    package = Path(__file__).parent.parent
    return [package / "numerics.py", *(path for f in HASHED for path in sorted((package / f).glob("*.py")))]


def package_files() -> list[str]:
    """All files of the packages that make programs, in a fixed order, and the one that tells networkx's version."""
    home = Path(__file__).parent.parent.parent
    spec = find_spec("networkx")
    walks = (os.walk(home / name) for name in ("common", "static"))  # eight times as fast as Path.rglob
    found = [f"{folder}{os.sep}{name}" for walk in walks for folder, _, names in walk for name in names]
    return [*sorted(f for f in found if f.endswith(".py")), *([spec.origin] if spec and spec.origin else [])]


def stamp(files: Sequence[Path | str]) -> str | None:
    """Return the key under which a hash of files and environment is kept; None where the processor is not known."""
    cpu = _cpu()
    if cpu is None:
        return None
    parts = [sys.version, np.__version__, cpu, os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")]
    marks = [_mark(path) for path in (*files, version_file("numba"), version_file("llvmlite"))]
    return hashlib.sha256(repr((parts, marks)).encode()).hexdigest()


def _mark(path: Path | str | None) -> object:
    try:
        status = os.stat(path) if path is not None else None  # noqa: PTH116  a Path takes three times as long
    except OSError:
        return str(path)
    return status and (str(path), status.st_size, status.st_mtime_ns)


def version_file(name: str) -> Path | None:
    """The file that an installation of another version rewrites."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).with_name("_version.py")


def _cpu() -> bytes | None:
    """What Linux says of the first processor, without its present speed."""
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            text, end, _ = file.read(16384).partition(b"\n\n")
    except OSError:
        return None
    return b"\n".join(line for line in text.splitlines() if line.startswith(_CPU_LINES)) if end else None
