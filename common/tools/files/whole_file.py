"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to: what is there at the end takes the place of `path` in one step.

    The bytes reach the disk before the name does, so a machine that stops at any moment has the old file or the new
    one. Several threads and processes may write to one path; the last one's file stays. What a link names is replaced,
    not the link; a device or a pipe gets the bytes.
    """
    if path.exists() and not path.is_file():
        with TemporaryDirectory() as folder:
            whole = Path(folder) / path.name
            yield whole
            with path.open("wb") as out:
                out.write(whole.read_bytes())
        return
    path = path.resolve() if path.is_symlink() else path
    beside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.replace(path)
        _sync_names(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def _sync_names(folder: Path) -> None:
    """Have the names in a folder on the disk, where the system can do that."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
