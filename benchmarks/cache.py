"""``python3 -m benchmarks cache``: lists or empties the disk cache of machine code and programs."""

from __future__ import annotations

import argparse

from common.compiler import disk_cache

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Print where the cache is and what it holds; with ``--clear`` empty it. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks cache",
        description="Show the disk cache of machine code and programs. TWINGRAD_CACHE=FOLDER places it elsewhere.",
    )
    parser.add_argument("--clear", action="store_true", help="remove all entries; they are compiled again when needed")
    options = parser.parse_args(arguments)
    held = disk_cache.clear() if options.clear else disk_cache.usage()
    did = "removed" if options.clear else f"of at most {disk_cache.LIMIT_BYTES / 2**20:.0f} MiB"
    print(f"{disk_cache.directory()}: {held.entries} entries, {held.nbytes / 2**20:.1f} MiB {did}")
    return 0
