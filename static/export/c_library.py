"""A program as a shared library with a C header: no Python, and no library but libc and libm, when it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common.compiler import compile as kernels
from common.compiler import llvm_engine
from common.compiler.machine_functions import PREFIX
from common.core.errors import ArgumentError, CompileError
from static.export.c_driver import CDriver, CParameter, driver_of
from static.export.compiled_call import compiled_call

COMPILERS = "gcc", "cc", "clang"
BASELINE = "x86-64-v2"


class CLibrary(NamedTuple):
    """What `export_library` has written.

    Attributes
    ----------
    library, header : the files.
    name : of the function in them.
    sizes : names of its first arguments, sizes.
    parameters : its arrays and numbers, in order: name, dtype, sizes as text, and whether they are written.
    state : of those that are the function's state, copies of what they are now, by name.
    """

    library: Path
    header: Path
    name: str
    sizes: tuple[str, ...]
    parameters: tuple[CParameter, ...]
    state: dict[str, np.ndarray]


def export_library(
    f: Callable[..., Any], path: Any, *args: Any, name: str | None = None, cpu: str = "native", **kwargs: Any
) -> CLibrary:
    """Write a function's program as a shared library, and a C header beside it.

    Parameters
    ----------
    f : a function of tensors or a module.
    path : of the library; the header has the same name with ".h".
    args, kwargs : an example of its arguments; without any, `f` is a compiled function that has been called.
    name : of the C function; that of `f` by default.
    cpu : "native" for processors like this one, or "baseline" for those of the last fifteen years. The bits are equal.

    Raises
    ------
    ArgumentError : the program calls Python or LAPACK, has a while_loop that stacks, or a name is none of C.
    CompileError : there is no C compiler, or it fails.

    Notes
    -----
    docs/c_library.md has an example.
    """
    if cpu not in ("native", "baseline"):
        raise ArgumentError(f'export_library(): cpu is "native" or "baseline", not {cpu!r}')
    compiler = _compiler()
    program = compiled_call("export_library", f, args, kwargs, name)
    library = Path(path)
    header = library.with_suffix(".h")
    driver = driver_of(program.name, program.frame, program.inputs, program.outputs, program.guards, header.name)
    _build(compiler, library, header, driver, cpu)
    names = [x.name for x in driver.parameters[len(program.inputs) - len(program.state) :]]
    state = {name: np.array(x) for name, x in zip(names, program.state, strict=False)}
    return CLibrary(library, header, program.name, driver.sizes, driver.parameters, state)


def _compiler() -> str:
    """The system's C compiler.

    Raises
    ------
    CompileError : there is none.
    """
    for found in (os.environ.get("CC"), *COMPILERS):
        if found and shutil.which(found.split()[0]):
            return found
    raise CompileError(
        "export_library(): there is no C compiler, which links the library: install gcc (Debian: apt install gcc; "
        "macOS: xcode-select --install), or name one in the environment variable CC"
    )


def _build(compiler: str, library: Path, header: Path, driver: CDriver, cpu: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        objects = []
        for i, code in enumerate(_objects(driver.kernels, cpu)):
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


def _objects(sources: Sequence[tuple[str, str]], cpu: str) -> list[bytes]:
    """Object code of kernels, and of what they call."""
    machine = _machine(cpu)
    codes, needed = [], dict[str, None]()
    for number, (source, name) in enumerate(sources):
        module, complete = kernels.front_end(source, name, f"twingrad_kernel{number}")
        codes.append(_emitted(module, machine, complete, needed))
    done: set[str] = set()
    while waiting := [symbol for symbol in needed if symbol not in done and symbol.startswith(PREFIX)]:
        for symbol in waiting:
            module = llvm_engine.parse(kernels.library_text(symbol))
            codes.append(_emitted(module, machine, True, needed))
            done.add(symbol)
    return codes


def _emitted(module: Any, machine: Any, complete: bool, needed: dict[str, None]) -> bytes:
    (llvm_engine.tidy if complete else llvm_engine.optimise)(module)
    needed.update(dict.fromkeys(kernels.externals(module)))
    for function in (*module.functions, *module.global_variables):
        if function.name.startswith("twingrad") and function.linkage.name not in ("internal", "private"):
            function.visibility = "hidden"
    return bytes(machine.emit_object(module))


def _machine(cpu: str) -> Any:
    """The target of code in a library."""
    from llvmlite import binding

    llvm_engine.target_machine()
    target = binding.Target.from_triple(binding.get_process_triple())
    name, features = llvm_engine.cpu()
    if cpu == "baseline":
        name, features = (BASELINE if target.name.startswith("x86") else ""), ""
    return target.create_target_machine(cpu=name, features=features, opt=2, reloc="pic", codemodel="default")
