"""Memory that a step frees is there for the next one: no page of it comes anew from the system."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLIBC = platform.libc_ver()[0] == "glibc"
STEPS = """
import resource
import numpy as np
import dynamic as tw
from dynamic.eager.heap import keep_freed_memory

x = tw.tensor(np.ones(500_000, np.float32), requires_grad=True)

def step():
    y = x
    for _ in range(12):
        y = y * x + x
    y.sum().backward()
    x.grad = None

for _ in range(12):  # the heap may grow by an array once more, where something small has been put into a gap
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(30):
    step()
print(keep_freed_memory(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(**environment: str) -> tuple[bool, int]:
    """Whether memory is kept in a new process, and how many pages its later steps took from the system."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", STEPS]
    out = subprocess.run(command, cwd=ROOT, env=env | environment, check=True, capture_output=True, text=True).stdout
    kept, faults = out.split()
    return kept == "True", int(faults)


def test_steps_touch_no_new_pages_where_memory_is_kept():
    kept, faults = pages()
    assert kept == GLIBC
    assert faults < 100 or not GLIBC


@pytest.mark.slow
def test_what_the_environment_says_goes_first():
    kept, faults = pages(MALLOC_TRIM_THRESHOLD_="1000000", MALLOC_MMAP_THRESHOLD_="1000000")
    assert not kept
    assert faults > 10_000 or not GLIBC
