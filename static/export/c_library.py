"""A program as a shared library with a C header: no Python, and no library but libc and libm, when it runs."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common.core.errors import ArgumentError, CompileError
from static.export.c_driver import WORDS, CDriver, CParameter, driver_of
from static.export.c_targets import WAYS, KernelTarget, objects_of, targets_of
from static.export.compiled_call import compiled_call

COMPILERS = "gcc", "cc", "clang"
FOR_ARM64 = "aarch64-linux-gnu-gcc"


class CLibrary(NamedTuple):
    """The files that `export_library` has written.

    Attributes
    ----------
    library, header : the files.
    name : of the function in them.
    sizes : names of its first arguments, sizes.
    parameters : its arrays and numbers, in order: name, dtype, sizes as text, and whether they are written.
    results : names of those that hold what the function returns; a tensor that is returned twice is there twice.
    state : of those that are the function's state, copies of what they are now, by name.
    """

    library: Path
    header: Path
    name: str
    sizes: tuple[str, ...]
    parameters: tuple[CParameter, ...]
    results: tuple[str, ...]
    state: dict[str, np.ndarray]


def export_library(
    f: Callable[..., Any], path: Any, *args: Any, name: str | None = None, cpu: str = "portable", **kwargs: Any
) -> CLibrary:
    """Write a function's program as a shared library, and a C header beside it.

    Parameters
    ----------
    f : a function of tensors or a module.
    path : of the library; the header has the same name with ".h".
    args, kwargs : an example of its arguments; without any, `f` is a compiled function that has been called.
    name : of the C function; that of `f` by default.
    cpu : "portable" for code of several kinds, of which the library takes the best when it is loaded: x86-64-v2, -v3
        and -v4; elsewhere that for this processor. "baseline" has the first of them only, "native" code for this
        processor, "arm64" code for any 64-bit ARM processor with Linux. The bits are equal.

    Raises
    ------
    ArgumentError : the program calls Python or LAPACK, or a name is none of C.
    CompileError : there is no C compiler, or it fails.

    Notes
    -----
    docs/c_library.md has an example.
    """
    if cpu not in WAYS:
        raise ArgumentError(f"export_library(): cpu is one of {', '.join(WAYS)}, not {cpu!r}")
    compiler, targets = _compiler(cpu), targets_of(cpu)
    program = compiled_call("export_library", f, args, kwargs, name)
    if program.name in WORDS:
        raise ArgumentError(f"export_library(): {program.name!r} is a word of C or C++: give a name with name=")
    library = Path(path)
    header = library.with_suffix(".h")
    driver = driver_of(
        program.name, program.frame, program.inputs, program.outputs, program.places, program.guards,
        header.name, {target.suffix: target.name for target in targets},
    )  # fmt: skip
    _build(compiler, library, header, driver, targets)
    names = [x.name for x in driver.parameters[len(program.inputs) - len(program.state) :]]
    state = {name: np.array(x) for name, x in zip(names, program.state, strict=False)}
    return CLibrary(library, header, program.name, driver.sizes, driver.parameters, driver.results, state)


def _compiler(cpu: str) -> str:
    """The system's C compiler for some processors.

    Raises
    ------
    CompileError : there is none.
    """
    across = cpu == "arm64" and platform.machine() not in ("aarch64", "arm64")
    for found in (os.environ.get("CC"), *((FOR_ARM64,) if across else COMPILERS)):
        if found and shutil.which(found.split()[0]):
            return found
    if across:
        raise CompileError(
            "export_library(): there is no C compiler for arm64: install one (Debian: apt install "
            "gcc-aarch64-linux-gnu), or name one in the environment variable CC"
        )
    raise CompileError(
        "export_library(): there is no C compiler, which links the library: install gcc (Debian: apt install gcc; "
        "macOS: xcode-select --install), or name one in the environment variable CC"
    )


def _build(compiler: str, library: Path, header: Path, driver: CDriver, targets: Sequence[KernelTarget]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        objects = []
        for i, code in enumerate(code for target in targets for code in objects_of(driver.kernels, target)):
            objects.append(home / f"kernel{i}.o")
            objects[-1].write_bytes(code)
        (home / header.name).write_text(driver.header, encoding="utf-8")
        (home / "driver.c").write_text(driver.source, encoding="utf-8")
        made = home / library.name
        command = [
            *compiler.split(), "-shared", "-fPIC", "-O2", "-std=c99", "-fvisibility=hidden", "-ffp-contract=off",
            "-o", str(made), str(home / "driver.c"), *map(str, objects), "-lm",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(f"export_library(): {compiler} fails: {done.stderr[-2000:]}")
        shutil.move(made, library)
        shutil.move(home / header.name, header)
