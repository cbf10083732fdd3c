"""A script in processes of their own: the instruction set is chosen once per process."""

import os
import subprocess
import sys
from pathlib import Path


def outputs(script):
    """What a script prints with code for this processor, and for the least one: one text if the bits are equal."""
    found = set()
    for extra in ({}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}):
        run = subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | extra,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(run.stdout)
    return found
