"""Machine code in files of programs: another process loads the file and calls it without compiling.

Entries are those of the disk cache, each with the checksum of its key and its bytes. A key follows from the kernel, the
processor and the versions of everything that compiles, so code for another processor is never found, and kernels are
then compiled as without it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from common.compiler import disk_cache
from common.core.errors import CompileError, StateError

SECONDS = 600.0
"""For which a rehearsal may run."""


def entries_of(data: bytes) -> dict[str, bytes]:
    """The entries of the disk cache that the programs of a file need, by file name.

    Raises
    ------
    CompileError : the process that compiles them fails, or takes too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        file, cache = Path(folder) / "program", Path(folder) / "cache"
        file.write_bytes(data)
        cache.mkdir(mode=0o700)
        paths = os.pathsep.join(path or "." for path in sys.path)
        environment = {**os.environ, "TWINGRAD_CACHE": str(cache), "PYTHONPATH": paths}
        command = [sys.executable, "-c", f"from static.export.rehearsal import rehearse; rehearse({str(file)!r})"]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise CompileError(f"save(native=True): the program did not end in {SECONDS:.0f} s") from None
        if done.returncode:
            raise CompileError(f"save(native=True): the program could not be compiled: {done.stderr[-2000:]}")
        return {path.name: path.read_bytes() for path in sorted(cache.glob(f"*{disk_cache.SUFFIX}"))}


def install(entries: Mapping[str, bytes]) -> None:
    """Let this process find entries that a file has, where its own cache has none.

    Raises
    ------
    StateError : the bytes of one are not those that its name stands for.
    """
    found: dict[str, disk_cache.Entry] = {}
    for name, data in entries.items():
        key = name.removesuffix(disk_cache.SUFFIX)
        entry = disk_cache.unpack(key, data)
        if entry is None:
            raise StateError(f"load(native=True): the machine code {name} is damaged")
        found[key] = entry
    disk_cache.given.update(found)
