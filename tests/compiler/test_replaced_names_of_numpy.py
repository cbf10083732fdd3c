"""Programs that give numpy its former names back, as ``np.bool = bool``, compile as others."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys, tempfile, os
import numpy as np
if sys.argv[1] == "before":
    np.bool, np.int, np.float, np.object = bool, int, float, object
import dynamic, static
np.bool, np.int, np.float, np.object = bool, int, float, object
x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
def f(x):
    inside = (x > 0) & (x < 0.9)
    return inside, inside.any(0), x.to(dynamic.bool), inside.float() * x, (x * 3).round().int().to(dynamic.bool)
eager = f(dynamic.tensor(x))
for results in (static.function(f)(x), static.function(f, compiler="numba")(x)):
    assert [np.asarray(a).tobytes() for a in results] == [np.asarray(a).tobytes() for a in eager]
path = os.path.join(tempfile.mkdtemp(), "numbers")
dynamic.save({"flag": np.bool_(True), "x": eager[3]}, path)
assert dynamic.load(path)["flag"] == True
print("same")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_program_that_replaces_names_compiles(when, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, when], capture_output=True, text=True, check=False,
        env={**os.environ, "TWINGRAD_CACHE": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "same\n", done.stderr[-2000:]
