"""Properties that only a fresh process shows: a warm start without numba, and several writers of one cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

USE = """
import sys
import numpy as np
from common.runtime.builtins import is_native, make_call, make_elementwise
from common.compiler.compile import compile_kernel
from tests.compiler.kernels import ADD, run_kernel

address = compile_kernel(ADD, "test_add")
x, y, z = np.arange(5, dtype="f"), np.ones(5, "f"), np.zeros(5, "f")
assert make_call(address)(x, y, z, 5) == 0
assert z.tolist() == [1, 2, 3, 4, 5]
assert make_elementwise(["f4", "f4"], "f4", address)(x, y).tolist() == z.tolist()
assert is_native('call')
"""

MANY = """
from common.compiler.compile import compile_kernel
from tests.compiler.kernels import run_kernel

for status in range(12):
    source = f"def test_status(bufs, args):\\n    return {status}\\n"
    assert run_kernel(compile_kernel(source, "test_status"), [], []) == status
"""


def start(code, folder):
    environment = os.environ | {"TWINGRAD_CACHE": str(folder), "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", code]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process):
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output


def test_no_start_imports_numba_and_a_warm_one_no_compiler(tmp_path):
    report = "print(sorted({'numba', 'llvmlite.binding', 'scipy', 'networkx'} & set(sys.modules)))"
    assert finish(start(USE + report, tmp_path)).strip() == "[]"
    report = "print(sorted({'numba', 'llvmlite', 'scipy', 'networkx'} & set(sys.modules)))"
    assert finish(start(USE + report, tmp_path)).strip() == "[]"


def test_importing_the_calls_needs_no_compiler(tmp_path):
    code = "import sys, common.runtime.builtins\nprint({'numba', 'llvmlite'} & set(sys.modules))"
    assert finish(start(code, tmp_path)).strip() == "set()"


def test_two_processes_fill_one_cache(tmp_path):
    processes = [start(MANY, tmp_path) for _ in range(2)]
    for process in processes:
        finish(process)
    files = [file.name for file in tmp_path.iterdir()]
    assert len(files) in (12, 13)  # the hash of the environment is there where it cannot lie beside the package
    assert all(name.endswith(".kernel") for name in files)
    finish(start(MANY, tmp_path))
