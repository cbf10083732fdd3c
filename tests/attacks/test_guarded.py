"""Programs in guarded memory, in processes of their own: what is read or written out of bounds ends them."""

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.helpers import guarded
from tests.helpers.proofs import examples

PROGRAMS = examples(12)


def run(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], check=False, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True
    )


@pytest.mark.parametrize("side", guarded.SIDES)
def test_programs_stay_within_their_memory(side, tmp_path):
    trace = tmp_path / "running"
    done = run(
        "-m", "tests.helpers.guarded_programs", "--side", side, "--programs", str(PROGRAMS), "--trace-file", trace
    )
    running = "" if done.returncode in (0, 1) else f"the process died in: {trace.read_text(encoding='utf-8')}"
    assert done.returncode == 0, f"{running}\n{done.stdout}\n{done.stderr[-3000:]}"
    assert f"{PROGRAMS} programs, 0 failures" in done.stdout


START = """
import sys
import numpy as np
import dynamic, static
from common.runtime.builtins import make_call
from common.compiler.compile import compile_kernel
from static.lowering.ir.kernel_memory import ColumnScratch
from tests.helpers import guarded
from tests.helpers.proofs import examples
from tests.compiler.kernels import ADD
guarded.guard(sys.argv[1])
add = make_call(compile_kernel(ADD, "test_add"))
x, y, z = (np.ones(5, np.float32) for _ in range(3))

def sums(sizes):
    for shape in sizes:
        static.function(lambda x: (x * 2).sum(0))(np.ones(shape, np.float32))
        guarded.check()

def one_row_less():
    whole = ColumnScratch.nbytes
    ColumnScratch.nbytes = lambda self, rows, columns: whole(self, rows, columns) - columns * self.itemsize

assert add(x, y, z, 5) == 0
sums([(40, 7)])
"""


NOTHING = """
def loss(x, y):
    z = static.atan2(x, y)
    return (z * z).sum()

f = static.function(static.grad(loss, (0, 1)))
for n in (0, 1, 1024, 1025):
    f(np.ones((3, n)), np.ones(()))
    guarded.check()
"""

#: Programs, and what ends each of them where arrays lie at one side of their pages; None if nothing is wrong.
WRONG = {
    "end": [
        ("add(x, y, z, 6)", "Segmentation fault"),
        ("one_row_less(); sums([(2000, 9)])", "Segmentation fault"),
        (NOTHING, None),
    ],
    "begin": [
        ("add(x, y, z, 6); del x, y, z", "something was written"),
        ("add(x, y, z, 2000)", "Segmentation fault"),
        ("one_row_less(); sums([(2000, 9)])", "written behind a temporary"),
        (NOTHING, None),
    ],
}

EACH = """
import os
for code, told in eval(sys.argv[2]):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 2)
        exec(code)
        os._exit(0)  # a defect that is found ends the process before
    os.close(write)
    said = open(read, errors="replace").read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(ended, repr(code))
    assert (ended == 0) if told is None else (ended != 0 and told in said), (code, ended, said)
"""


@pytest.mark.parametrize("side", guarded.SIDES)
def test_the_guard_sees(side):
    """Each program in a fork of one process: most of them end it."""
    done = run("-c", START + EACH, side, repr(WRONG[side]))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(WRONG[side])
