"""``python3 -m benchmarks cache``: lists or empties the disk cache of machine code and programs."""

from __future__ import annotations

import argparse

from common.compiler import disk_cache

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Print where the cache and ready-made kernels lie and how much they hold, or empty both; return 0."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks cache",
        description="Show the disk cache of machine code and programs, which TWINGRAD_CACHE=FOLDER places elsewhere, "
        "and the ready-made kernels beside the package.",
    )
    parser.add_argument("--clear", action="store_true", help="remove all entries; they are compiled again when needed")
    options = parser.parse_args(arguments)
    for folder, limit in disk_cache.folders().items():
        held = disk_cache.clear(folder) if options.clear else disk_cache.usage(folder)
        did = "removed" if options.clear else f"of at most {limit / 2**20:.0f} MiB"
        print(f"{folder}: {held.entries} entries, {held.nbytes / 2**20:.1f} MiB {did}")
    return 0
