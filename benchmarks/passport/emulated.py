"""A C library for arm64, called by a C program that qemu-user runs: on any Linux with a cross compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.passport.exact_numbers import Array

COMPILER = "aarch64-linux-gnu-gcc"
EMULATORS = "qemu-aarch64", "qemu-aarch64-static"
MAIN = r"""
#include "program.h"
#include <stdio.h>
#include <stdlib.h>
static void *take(FILE *f, size_t n) { void *p = malloc(n + 1); if (fread(p, 1, n, f) != n) exit(2); return p; }
int main(void) {
    FILE *f = fopen("given", "rb"), *out = fopen("written", "wb");
    @TAKE@
    int code = program(@GIVEN@, NULL);
    if (code) { fprintf(stderr, "%s\n", program_error(code)); return 3; }
    @GIVE@
    return fclose(out);
}
"""
TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t"}


def emulator() -> str | None:
    """The emulator, where the machine has it and the cross compiler."""
    return next(filter(None, map(shutil.which, EMULATORS)), None) if shutil.which(COMPILER) else None


def call(made: Any, sizes: Sequence[int], arrays: Sequence[Array]) -> None:
    """Call the function `program` of a library for arm64; what it writes is written to `arrays`.

    Raises
    ------
    ValueError
        It ends with an error code.
    """
    home, run = Path(made.library).parent, emulator()
    assert run is not None
    names = [f"*({TYPES.get(p.dtype, f'{p.dtype}_t')} *)a{i}" if p.number else f"a{i}"
             for i, p in enumerate(made.parameters)]  # fmt: skip
    written = [(i, x) for i, (p, x) in enumerate(zip(made.parameters, arrays, strict=True)) if p.written]
    text = MAIN.replace("@GIVEN@", ", ".join([*map(str, sizes), *names]))
    text = text.replace("@TAKE@", "\n    ".join(f"void *a{i} = take(f, {x.nbytes});" for i, x in enumerate(arrays)))
    text = text.replace("@GIVE@", "\n    ".join(f"fwrite(a{i}, 1, {x.nbytes}, out);" for i, x in written))
    (home / "main.c").write_text(text, encoding="utf-8")
    (home / "given").write_bytes(b"".join(x.tobytes() for x in arrays))
    build = [COMPILER, "main.c", f"./{made.library.name}", "-I.", "-O1", "-o", "main", "-Wl,-rpath,."]
    subprocess.run(build, cwd=home, check=True, capture_output=True)
    libc = subprocess.run([COMPILER, "-print-file-name=libc.so.6"], check=True, capture_output=True, text=True).stdout
    root = Path(libc.strip()).resolve().parents[1]
    done = subprocess.run([run, "-L", str(root), "./main"], cwd=home, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"the program for arm64 ended with code {done.returncode}: {done.stderr}")
    data, begin = (home / "written").read_bytes(), 0
    for _, x in written:
        x[...] = np.frombuffer(data[begin : begin + x.nbytes], x.dtype).reshape(x.shape)
        begin += x.nbytes
