"""A program in a C library has Python's bits, called from C; where there is no compiler, the error says what to do."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import static
from benchmarks.workloads.digits import Digits
from common.core.errors import ArgumentError, CompileError
from tests.static.export.test_held_graph import X, assert_same_bits

F32 = np.float32
COMPILER = next(filter(None, map(shutil.which, ("gcc", "cc", "clang"))), None)


def scores(x):
    return static.softmax(x.tanh() @ x.T, -1).sum(0), (x * x).sum(1)


def called(lib, made, sizes, arrays):
    function = getattr(lib, made.name)
    function.argtypes = [ctypes.c_int64] * len(sizes) + [ctypes.c_void_p] * (len(arrays) + 1)
    return function(*sizes, *(x.ctypes.data for x in arrays), None)


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(CompileError, match="apt install gcc"):
        static.export_library(scores, tmp_path / "f.so", X)


@pytest.mark.parametrize("cpu", ["native", "baseline"] if COMPILER else [])
def test_a_library_has_the_bits_at_new_sizes(tmp_path, cpu):
    made = static.export_library(scores, tmp_path / "scores.so", X, cpu=cpu)
    lib = ctypes.CDLL(str(made.library))
    for n in (3, 1, 33):
        x = np.resize(X, (n, 4)) * F32(0.3)
        results = [np.empty(n, F32), np.empty(n, F32)]
        assert called(lib, made, (n, 4), (x, *results)) == 0
        for found, wanted in zip(results, static.function(scores)(x), strict=True):
            assert_same_bits(found, wanted)
    error = lib.scores_error
    error.restype = ctypes.c_char_p
    assert called(lib, made, (-1, 4), (x, *results)) == -1
    assert error(-1) == b"the sizes do not fit the program"


MAIN = r"""
#include "step.h"
#include <stdio.h>
#include <stdlib.h>
static void *take(FILE *f, size_t n) { void *p = malloc(n); if (fread(p, 1, n, f) != n) exit(2); return p; }
int main(int argc, char **argv) {
    FILE *f = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    void *workspace = malloc((size_t)step_workspace(@SIZES@));
    @TAKE@
    for (int i = 0; i < @STEPS@; i++) {
        void *x0 = take(f, @X@), *x1 = take(f, @Y@);
        int code = step(@SIZES@, @GIVEN@, workspace);
        if (code) { fprintf(stderr, "%s\n", step_error(code)); return 3; }
        fwrite(result0, 1, 4, out);
    }
    @GIVE@
    return argc != 3 || fclose(out);
}
"""


def test_a_c_program_trains_the_digits_with_the_bits_of_python(tmp_path):
    if COMPILER is None:
        return
    workload, steps = Digits(), 6
    batches = workload.inputs()
    program = workload.make(static)
    made = static.export_library(program.call, tmp_path / "step.so", *batches[0], name="step")
    sizes = ", ".join(str({"x0_0": 64, "x0_1": 64, "x1_0": 64}[name]) for name in made.sizes)
    take, give, arrays = [], [], []
    for p in made.parameters[2:]:
        x = made.state.get(p.name, np.zeros(tuple(map(int, p.shape)), p.dtype))
        arrays.append(x.tobytes())
        take.append(f"void *{p.name} = take(f, {x.nbytes});")
        if p.name in made.state:
            give.append(f"fwrite({p.name}, 1, {x.nbytes}, out);")
    text = MAIN.replace("@SIZES@", sizes).replace("@STEPS@", str(steps)).replace("@TAKE@", "\n    ".join(take))
    text = text.replace("@GIVE@", "\n    ".join(give)).replace("@GIVEN@", ", ".join(p.name for p in made.parameters))
    text = text.replace("@X@", str(batches[0][0].nbytes)).replace("@Y@", str(batches[0][1].nbytes))
    (tmp_path / "main.c").write_text(text)
    (tmp_path / "data").write_bytes(b"".join([*arrays, *(x.tobytes() for b in batches[:steps] for x in b)]))
    command = [COMPILER, "main.c", "./step.so", "-I.", "-O1", "-o", "main", "-Wl,-rpath,."]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["./main", "data", "out"], cwd=tmp_path, check=True)
    found = (tmp_path / "out").read_bytes()
    wanted = [program.call(*b).detach().numpy().tobytes() for b in batches[:steps]]
    known = {name.replace(".", "_"): x for name, x in program.parameters().items()}
    at = 4 * steps
    assert found[:at] == b"".join(wanted)
    for name, x in made.state.items():
        if name.removeprefix("p_") in known:
            assert found[at : at + x.nbytes] == known.pop(name.removeprefix("p_")).tobytes()
        at += x.nbytes
    assert known == {}
    assert len(found) == at


def test_what_cannot_run_in_c_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="LoopStep"):
        static.export_library(lambda x: static.fori_loop(0, 5, lambda i, y: y.sin(), x), tmp_path / "f.so", X, name="f")
    with pytest.raises(ArgumentError, match="no name of a function"):
        static.export_library(lambda x: x * 2, tmp_path / "f.so", X, name="my f")
    with pytest.raises(ArgumentError, match="baseline"):
        static.export_library(scores, tmp_path / "f.so", X, cpu="fast")
