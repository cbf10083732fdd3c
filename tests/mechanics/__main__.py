"""``python -m tests.mechanics``: the programs with PyTorch, where it is installed; 1 if one does not hold.

``--random N --seed S`` runs N random programs instead (`tests.helpers.random_mechanics`), from seed S on, in `dynamic`
and in PyTorch, and shows where they disagree.
"""

import argparse
import sys
import traceback

import torch

import dynamic
from tests.helpers.noted import STRICTER, difference
from tests.helpers.random_mechanics import Program
from tests.mechanics.collect import PROGRAMS


def run_written() -> int:
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


def run_random(count: int, seed: int, steps: int) -> int:
    """Compare random programs; a failure is shown as what the program did until then, and what was seen."""
    failed = ended = 0
    for number in range(seed, seed + count):
        ours, theirs = Program(dynamic, number, steps).differentiate(), Program(torch, number, steps).differentiate()
        ended += theirs[-1].seen == STRICTER
        wrong = difference(ours, theirs)
        if wrong:
            failed += 1
            print(f"--random 1 --seed {number} --steps {steps}\n{wrong}")
    print(
        f"{count} programs, {failed} disagree with PyTorch {torch.__version__}; "
        f"{ended} were compared up to what PyTorch refuses more strictly"
    )
    return bool(failed)


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mechanics")
    parser.add_argument("--random", type=int, default=0, help="number of random programs")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first one")
    parser.add_argument("--steps", type=int, default=12, help="steps of each")
    options = parser.parse_args()
    return run_random(options.random, options.seed, options.steps) if options.random else run_written()


if __name__ == "__main__":
    sys.exit(main())
