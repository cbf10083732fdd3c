"""A program in a C library has Python's bits, called from C; where there is no compiler, the error says what to do."""

import ctypes
import shutil
import subprocess

import cffi
import numpy as np
import pytest

import static
from benchmarks.workloads.digits import Digits
from common.core.errors import ArgumentError, CompileError
from common.core.tree import flatten
from tests.static.export.test_held_graph import X, assert_same_bits

F32 = np.float32
COMPILER = next(filter(None, map(shutil.which, ("gcc", "cc", "clang"))), None)


def scores(x):
    return static.softmax(x.tanh() @ x.T, -1).sum(0), (x * x).sum(1)


def called(lib, made, sizes, arrays):
    function = getattr(lib, made.name)
    function.argtypes = [ctypes.c_int64] * len(sizes) + [ctypes.c_void_p] * (len(arrays) + 1)
    return function(*sizes, *(x.ctypes.data for x in arrays), None)


@pytest.mark.parametrize("cpu", ["portable", "arm64"])
def test_without_a_compiler_the_error_says_what_to_install(monkeypatch, tmp_path, cpu):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(CompileError, match="apt install gcc"):
        static.export_library(scores, tmp_path / "f.so", X, cpu=cpu)


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


H, XS, NEW = X[0, :3], X[:, :3] * F32(0.5), np.resize(X, (9, 2)) * F32(0.25)
#: Programs with control flow, their arguments, and others of other sizes.
CONTROL = {
    "cond": (lambda x: static.cond(x.sum() > 0, lambda x: x * 2, lambda x: x.sin(), x), (H,), (-np.abs(NEW[:, 0]),)),
    "while": (lambda x: static.while_loop(lambda v: v.sum() > 0.1, lambda v: v * 0.5, x), (abs(H),), (abs(NEW[0]),)),
    "numbers": (
        lambda n: static.while_loop(lambda v: v[0] > 1, lambda v: (
            static.where(v[0] % 2 == 0, v[0] // 2, 3 * v[0] + 1), v[1] + 1), (n, static.tensor(0))),
        (np.array(27),), (np.array(97),),
    ),
    "swap": (lambda a, b: static.fori_loop(0, 3, lambda i, v: (v[1], v[0] + 1), (a, b)), (H, H * 2), (NEW[0],) * 2),
    "scan": (
        static.value_and_grad(
            lambda h, x: static.scan(lambda c, r: ((c * r).tanh(), c), h, x)[1].sum(), argnums=(0, 1)
        ),
        (H, XS), (NEW[0], NEW),
    ),
    "nested": (
        lambda x: static.fori_loop(0, 3, lambda i, y: static.cond(
            y.sum() > 0, lambda y: static.fori_loop(0, 2, lambda j, z: z @ z.T * 0.1, y), lambda y: y.cos(), y), x),
        (X[:2, :2].copy(),), (X[:3, :3].copy(),),
    ),
    "until": (static.value_and_grad(lambda x: until(x).sum()), (abs(H),), (abs(NEW[0]),)),
    "curvature": (static.grad(lambda x: static.grad(lambda x: until(x).sum())(x).sum()), (abs(H),), (abs(NEW[0]),)),
    "until in a loop": (
        static.grad(lambda x: static.fori_loop(0, 3, lambda i, y: until(y) * 9 + x, x).sum()), (abs(H),), (abs(NEW[0]),)
    ),
}  # fmt: skip


def until(x):
    """A loop whose iterations data decide, and whose gradient needs what each of them computes."""
    return static.while_loop(lambda v: v.sum() > 0.01, lambda v: v.tanh() * 0.5, x)


@pytest.mark.parametrize("name", CONTROL if COMPILER else [])
def test_control_flow_is_in_a_library(tmp_path, name):
    f, *calls = CONTROL[name]
    made = static.export_library(f, tmp_path / "f.so", *calls[0], name="f", cpu="native")
    lib = ctypes.CDLL(str(made.library))
    for given in calls:
        sizes = {f"x{i}_{k}": n for i, x in enumerate(given) for k, n in enumerate(x.shape)}
        wanted = [np.asarray(x) for x in flatten(static.function(f)(*given))[0]]
        results = [np.empty_like(x) for x in wanted]
        arrays = [*map(np.ascontiguousarray, given), *made.state.values(), *results]
        if "iterations" in made.sizes:
            assert called(lib, made, [sizes.get(n, 1) for n in made.sizes], arrays) == -3
        assert called(lib, made, [sizes.get(n, 64) for n in made.sizes], arrays) == 0
        for x, y in zip(results, wanted, strict=True):
            assert_same_bits(x, y)


def test_a_loop_that_has_too_little_room_changes_nothing(tmp_path):
    if COMPILER is None:
        return
    static.manual_seed(0)
    layer = static.nn.Linear(4, 4)
    optimizer = static.optim.Adam(layer.parameters(), lr=0.1)

    @static.function
    def step(x):
        optimizer.zero_grad()
        y = static.while_loop(
            lambda v: v.abs().sum() > 0.01, lambda v: layer(v).tanh() * static.nn.functional.dropout(v, 0.1) * 0.5, x
        )
        loss = (y * x).sum() + layer.weight.square().sum()
        loss.backward()
        optimizer.step()
        return loss

    step(X)
    made = static.export_library(step, tmp_path / "step.so", X, name="step", cpu="native")
    lib, before = ctypes.CDLL(str(tmp_path / "step.so")), {name: x.copy() for name, x in made.state.items()}
    results = {p.name: np.empty([int(n) for n in p.shape], p.dtype) for p in made.parameters[1 + len(before) :]}
    arrays = [X, *made.state.values(), *results.values()]
    for room in (0, 1, 2, 64):
        assert [x.tobytes() for x in made.state.values()] == [x.tobytes() for x in before.values()]
        code = called(lib, made, (3, 4, room)[-len(made.sizes) :], arrays)
        assert code == (0 if room == 64 else -3)
    loss = step(X)
    assert results["result0"].tobytes() == loss.detach().numpy().tobytes()
    assert made.state["weight"].tobytes() == layer.weight.detach().numpy().tobytes()


SERVER = r"""
#include "served.h"
#include <cstdio>
#include <vector>
static std::vector<float> take(FILE *f, long n) {
    std::vector<float> x(n);
    if (fread(x.data(), 4, n, f) != (size_t)n) throw 2;
    return x;
}
int main(int, char **argv) {
    FILE *f = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    std::vector<char> workspace(served_workspace(@SIZES@));
    @TAKE@
    int code = served(@SIZES@, @GIVEN@, workspace.data());
    if (code) { fprintf(stderr, "%s\n", served_error(code)); return 3; }
    fwrite(result0.data(), 4, result0.size(), out);
    return fclose(out);
}
"""


@pytest.fixture(scope="module")
def lstm(tmp_path_factory):
    """An LSTM as a library, what it is to read at a longer sequence, and what it is to answer."""
    static.manual_seed(0)
    layer, head = static.nn.LSTM(4, 6), static.nn.Linear(6, 3)

    def served(x):
        return head(layer(x)[0][-1])

    made = static.export_library(
        served, tmp_path_factory.mktemp("lstm") / "served.so", np.stack([X] * 2, 1), cpu="native"
    )
    x = np.resize(np.sin(np.arange(31, dtype=F32)), (11, 3, 4))
    return made, {**made.state, "x0": x, "result0": np.zeros((3, 3), F32)}, np.asarray(served(x).detach())


def test_a_cpp_program_serves_an_lstm_with_the_bits_of_python(lstm):
    compiler = next(filter(None, map(shutil.which, ("g++", "c++", "clang++"))), None)
    if compiler is None:
        return
    made, arrays, wanted = lstm
    home, names = made.library.parent, [p.name for p in made.parameters]
    sizes = ", ".join(str(arrays["x0"].shape[int(n[-1])]) for n in made.sizes)
    take = "\n    ".join(f"auto {name} = take(f, {arrays[name].size});" for name in names)
    text = SERVER.replace("@SIZES@", sizes).replace("@TAKE@", take)
    (home / "main.cpp").write_text(text.replace("@GIVEN@", ", ".join(f"{name}.data()" for name in names)))
    (home / "data").write_bytes(b"".join(arrays[name].tobytes() for name in names))
    command = [compiler, "main.cpp", "./served.so", "-Wall", "-Werror", "-o", "main", "-Wl,-rpath,."]
    subprocess.run(command, cwd=home, check=True, capture_output=True)
    subprocess.run(["./main", "data", "out"], cwd=home, check=True)
    assert (home / "out").read_bytes() == wanted.tobytes()


def test_cffi_reads_the_header_and_calls_the_library(lstm):
    made, arrays, wanted = lstm
    ffi = cffi.FFI()
    ffi.cdef("\n".join(line for line in made.header.read_text().splitlines() if line[:1] not in ("#", "}", "e")))
    lib = ffi.dlopen(str(made.library))
    result = np.zeros((3, 3), F32)
    given = [ffi.from_buffer("float *", {**arrays, "result0": result}[p.name]) for p in made.parameters]
    assert lib.served(*(arrays["x0"].shape[int(n[-1])] for n in made.sizes), *given, ffi.NULL) == 0
    assert_same_bits(result, wanted)
    assert ffi.string(lib.served_error(-1)) == b"the sizes do not fit the program"


def test_names_that_c_has_taken_are_changed(tmp_path):
    if COMPILER is None:
        return
    model = static.nn.Module()
    for name in ("double", "new", "workspace", "x0_0", "f", "offsets"):
        setattr(model, name, static.nn.Parameter(X[0] * 2))

    def scaled(x):
        return x * sum(model.parameters())

    made = static.export_library(scaled, tmp_path / "f.so", X, name="f", cpu="native")
    result, sizes = np.empty_like(X), (3, 4)[-len(made.sizes) :]
    assert called(ctypes.CDLL(str(made.library)), made, sizes, [X, *made.state.values(), result]) == 0
    assert_same_bits(result, static.function(scaled)(X).detach())


def test_results_have_the_numbers_of_what_is_returned(tmp_path):
    if COMPILER is None:
        return

    def f(x):
        y = x * 2
        return y, None, y, {"x": x + 1}

    made = static.export_library(f, tmp_path / "f.so", X, name="f", cpu="native")
    assert [p.name for p in made.parameters] == ["x0", "result0", "result2"]
    assert made.results == ("result0", "result0", "result2")
    assert " *   result1 is result0\n" in made.header.read_text()
    doubled, more = np.empty_like(X), np.empty_like(X)
    assert called(ctypes.CDLL(str(made.library)), made, X.shape[-len(made.sizes) :], [X, doubled, more]) == 0
    assert_same_bits(doubled, X * 2)
    assert_same_bits(more, X + 1)


def test_what_cannot_run_in_c_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="LAPACK"):
        static.export_library(lambda x: static.linalg.inv(x @ x.T), tmp_path / "f.so", X, name="f")
    with pytest.raises(ArgumentError, match="no name of a function"):
        static.export_library(lambda x: x * 2, tmp_path / "f.so", X, name="my f")
    with pytest.raises(ArgumentError, match="'union' is a word of C"):
        static.export_library(scores, tmp_path / "f.so", X, name="union")
    with pytest.raises(ArgumentError, match="baseline"):
        static.export_library(scores, tmp_path / "f.so", X, cpu="fast")
