"""``python3 -m tests [pytest arguments]``: the whole suite on all cores, or what the arguments say."""

import os
import sys

from benchmarks.bootstrap import ROOT, bootstrap

NEEDS = ("numpy", "numba", "networkx", "scipy", "pytest", "pytest_benchmark", "xdist", "hypothesis", "mpmath",
         "ruff", "mypy", "importlinter", "matplotlib", "tensorboard")  # fmt: skip


def main() -> int:
    """Run pytest on the checkout and return its exit code."""
    bootstrap("tests", "test", NEEDS)
    try:
        import pytest
    except ImportError:
        print("tests: pytest is missing here; python3 -m pip install -e '.[test]'", file=sys.stderr)
        return 2
    # Only the plain command runs in parallel: with arguments, -x, --pdb, -s and durations mean what they say.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # At most 8 workers, of about 300 MB each: the compiler is loaded in every one.
    arguments = sys.argv[1:] or ["-n", str(min(cores, 8)), "--dist", "worksteal"]
    return int(pytest.main(["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), *arguments]))


if __name__ == "__main__":
    raise SystemExit(main())
