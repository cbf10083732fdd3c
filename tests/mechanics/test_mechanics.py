"""PyTorch's autograd mechanics in both engines: the same assertions hold, and the same bits are seen."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dynamic
from tests.mechanics.collect import PROGRAMS
from tests.mechanics.digest import digest

ROOT = Path(__file__).resolve().parent.parent.parent


def in_static(*arguments):
    """The findings of a process that imports `static` only."""
    command = [sys.executable, "-m", "tests.mechanics.digest", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def alone():
    return in_static()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, alone):
    assert digest(PROGRAMS[name], dynamic) == alone[name]


def test_pages_hold_in_static_alone():
    assert in_static("--pages") == {}
