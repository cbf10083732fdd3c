"""``python -m tests.mechanics``: the programs with PyTorch, where it is installed; 1 if one does not hold."""

import sys
import traceback

import torch

from tests.mechanics.collect import PROGRAMS


def main() -> int:
    """Run every program and name those that fail."""
    failed = []
    for name, program in PROGRAMS.items():
        try:
            program(torch)
        except Exception:
            failed.append(name)
            traceback.print_exc()
    print(f"{len(PROGRAMS) - len(failed)} of {len(PROGRAMS)} programs hold in PyTorch {torch.__version__}")
    print(*failed, sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
