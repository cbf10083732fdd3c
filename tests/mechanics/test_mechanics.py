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


@pytest.fixture(scope="module")
def alone():
    """What a process has found that imports `static` only."""
    command = [sys.executable, "-m", "tests.mechanics.digest"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, alone):
    assert digest(PROGRAMS[name], dynamic) == alone["programs"][name]


def test_pages_hold_in_static_alone(alone):
    assert alone["pages"] == {}
