"""The tests: ``python3 -m tests [--quick | --all | pytest arguments]``.

Without arguments they are all but those marked `slow`, on all cores; ``--quick`` is the core of each proof, ``--all``
everything. Other arguments go to pytest.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWN = ROOT / "benchmarks" / "__init__.py"
FOUND = getattr(find_spec("benchmarks"), "origin", None)
if not FOUND or Path(FOUND).resolve() != OWN:  # before anything is imported from it
    raise SystemExit(f"twingrad: {FOUND or 'nothing'} is found in place of Twingrad's own package "
                     f"{str(OWN.parent)!r}: run the command in {str(ROOT)!r}")  # fmt: skip

from benchmarks.bootstrap import bootstrap  # noqa: E402

NEEDS = ("numpy", "numba", "networkx", "scipy", "pytest", "pytest_benchmark", "xdist", "hypothesis", "mpmath",
         "ruff", "mypy", "importlinter", "matplotlib", "tensorboard",
         "jinja2", "rich", "distributed")  # fmt: skip


def main() -> int:
    """Run pytest on the checkout and return its exit code."""
    bootstrap("tests", "test", NEEDS)
    import pytest

    arguments = sys.argv[1:]
    chosen = {(): ["-m", "not slow"], ("--quick",): ["--quick"], ("--all",): []}.get(tuple(arguments))
    if chosen is not None:
        # Only these run in parallel: with other arguments, -x, --pdb, -s and durations mean what they say.
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        # At most 8 workers, of about 300 MB each: the compiler is loaded in every one.
        arguments = [*chosen, "-n", str(min(cores, 8)), "--dist", "worksteal", str(ROOT / "tests")]
    return int(pytest.main(["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), *arguments]))


if __name__ == "__main__":
    raise SystemExit(main())
