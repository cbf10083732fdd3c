"""Promises of a C library, asked by a C program: processors, sizes, memory, error codes, threads, no libraries."""

import os
import platform
import re
import shutil
import subprocess

import numpy as np
import pytest

import static
from tests.static.export.test_c_library import COMPILER, F32

CHECK = r"""
#include "pick.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { COLUMNS = 5, THREADS = 8, CALLS = 40, GUARD = 256 };
struct work { int64_t rows; float *x, *y; int64_t *index; int wrong; };
static void *several(void *given) {  /* each thread has sizes, arrays and a workspace of its own */
    struct work *w = given;
    int64_t bytes = pick_workspace(COLUMNS, w->rows, w->rows);
    unsigned char *space = malloc(bytes + GUARD);
    float *again = malloc(w->rows * COLUMNS * sizeof *again);
    memset(space + bytes, 0xAB, GUARD);
    for (int i = 0; i < CALLS; i++) {
        memset(space, 0xFF, bytes);
        w->wrong |= pick(COLUMNS, w->rows, w->rows, w->x, w->index, again, space) != 0;
        w->wrong |= memcmp(again, w->y, w->rows * COLUMNS * sizeof *again) != 0;
    }
    for (int i = 0; i < GUARD; i++) w->wrong |= space[bytes + i] != 0xAB;
    free(space), free(again);
    return 0;
}
int main(int argc, char **argv) {
    struct work w[THREADS];
    pthread_t threads[THREADS];
    FILE *out = fopen(argv[1], "wb");
    for (int t = 0; t < THREADS; t++) {
        int64_t rows = w[t].rows = 3 + 131 * t;
        w[t].x = malloc(rows * COLUMNS * 4), w[t].y = malloc(rows * COLUMNS * 4), w[t].index = malloc(rows * 8);
        w[t].wrong = 0;
        for (int64_t i = 0; i < rows * COLUMNS; i++) w[t].x[i] = (float)((i * 37 + t) % 101) / 64 - 0.75f;
        for (int64_t i = 0; i < rows; i++) w[t].index[i] = (i * 7) % rows;
        if (pick(COLUMNS, rows, rows, w[t].x, w[t].index, w[t].y, 0)) return 3;  /* allocates its workspace */
        fwrite(w[t].y, 4, rows * COLUMNS, out);
    }
    for (int t = 0; t < THREADS; t++) pthread_create(threads + t, 0, several, w + t);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], 0);
    for (int t = 0; t < THREADS; t++) if (w[t].wrong) return 4;
    float kept = w[0].y[0];
    int64_t far = (int64_t)1 << 61, much = (int64_t)1 << 42;
    printf("%d %d %d\n", pick(COLUMNS, -1, 3, w[0].x, w[0].index, w[0].y, 0),
           pick(COLUMNS, far, far, w[0].x, w[0].index, w[0].y, 0),
           pick(COLUMNS, much, much, w[0].x, w[0].index, w[0].y, 0));
    printf("%d %d\n", pick_workspace(COLUMNS, -1, 3) < 0, pick_workspace(COLUMNS, far, far) < 0);
    if (w[0].y[0] != kept) return 5;
    w[0].index[1] = w[0].rows;
    int code = pick(COLUMNS, w[0].rows, w[0].rows, w[0].x, w[0].index, w[0].y, 0);
    printf("%d %s; %s; %s\n", code > 0, pick_error(code), pick_error(-1), pick_error(-2));
    printf("%s\n", pick_target());
    return argc != 2 || fclose(out);
}
"""


def pick(x, index):
    rows = x.index_select(0, index).tanh()
    return (rows - rows.mean(0)) * static.softmax(rows @ x.T, -1).sum(1, keepdim=True)


def program(home, cpu):
    x, index = np.ones((4, 5), F32), np.array([0, 2, 1])
    made = static.export_library(pick, home / "pick.so", x, index, cpu=cpu)
    text = CHECK
    assert sorted(made.sizes) == ["x0_0", "x0_1", "x1_0"]
    for call in re.findall(r"pick(?:_workspace)?\(COLUMNS, [^,]+, [^,)]+", CHECK):
        name, _, given = call.partition("(")
        columns, rows, count = given.split(", ")
        sizes = {"x0_0": rows, "x0_1": columns, "x1_0": count}
        text = text.replace(call, f"{name}({', '.join(sizes[n] for n in made.sizes)}")
    (home / "check.c").write_text(text)
    command = [COMPILER, "check.c", "./pick.so", "-I.", "-O1", "-pthread", "-Wall", "-o", "check", "-Wl,-rpath,."]
    subprocess.run(command, cwd=home, check=True, capture_output=True)
    return made


def run(home, target=""):
    environment = {**{k: v for k, v in os.environ.items() if k != "TWINGRAD_TARGET"}, "TWINGRAD_TARGET": target}
    done = subprocess.run(["./check", "out"], cwd=home, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines(), (home / "out").read_bytes()


def wanted():
    found, f = [], static.function(pick)
    for t in range(8):
        rows = 3 + 131 * t
        i = np.arange(rows * 5)
        x = ((i * 37 + t) % 101).astype(F32) / F32(64) - F32(0.75)
        found.append(f(x.reshape(rows, 5), np.arange(rows) * 7 % rows).numpy().tobytes())
    return b"".join(found)


@pytest.mark.parametrize(
    "cpu", ["portable", *(pytest.param(x, marks=pytest.mark.slow) for x in ("native", "baseline"))] if COMPILER else []
)
def test_a_c_program_finds_what_the_header_promises(tmp_path, cpu):
    made = program(tmp_path, cpu)
    on_x86 = platform.machine() == "x86_64"
    limits = ["", "x86-64-v3", "x86-64-v2"] if cpu == "portable" and on_x86 else [""]
    targets = []
    for limit in limits:
        (codes, queries, errors, target), results = run(tmp_path, limit)
        assert results == wanted()
        assert (codes, queries) == ("-1 -2 -2", "1 1")
        assert re.fullmatch("1 .*index.*; the sizes do not fit the program; no memory", errors)
        targets.append(target)
    if on_x86 and cpu != "native":
        assert targets[-1] == "x86-64-v2"
        assert targets == sorted(targets, reverse=True)
    if shutil.which("readelf"):
        read = subprocess.run(["readelf", "-d", made.library], capture_output=True, text=True, check=True).stdout
        assert set(re.findall(r"NEEDED.*\[(\w+)", read)) <= {"libc", "libm"}


def test_a_size_of_zero_that_the_program_divides_by_is_refused(tmp_path):
    if COMPILER is None:
        return
    import ctypes

    f = lambda x, y: x.reshape(y.shape[0], -1).sum(1)  # noqa: E731
    made = static.export_library(f, tmp_path / "f.so", np.ones(6, F32), np.ones(3, F32), name="f")
    lib = ctypes.CDLL(str(made.library))
    lib.f_workspace.restype = ctypes.c_int64
    sizes = {"x0_0": 6, "x1_0": 3}
    assert lib.f_workspace(*(ctypes.c_int64(sizes[n]) for n in made.sizes)) >= 0
    sizes["x1_0"] = 0
    assert lib.f_workspace(*(ctypes.c_int64(sizes[n]) for n in made.sizes)) < 0
