"""``python3 -m tests [pytest arguments]``: the whole suite, or what the arguments select."""

import sys

from benchmarks.bootstrap import ROOT, bootstrap

NEEDS = ("numpy", "numba", "networkx", "scipy", "pytest", "pytest_benchmark", "xdist", "hypothesis", "mpmath",
         "ruff", "mypy", "importlinter")  # fmt: skip


def main() -> int:
    """Run pytest on the checkout and return its exit code."""
    bootstrap("tests", "test", NEEDS)
    try:
        import pytest
    except ImportError:
        print("tests: pytest is missing here; python3 -m pip install -e '.[test]'", file=sys.stderr)
        return 2
    return int(pytest.main(["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), *sys.argv[1:]]))


if __name__ == "__main__":
    raise SystemExit(main())
