"""In which ways the programs run: by an engine, compiled so or so, saved and loaded, as a C library."""

from __future__ import annotations

import ctypes
import importlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.passport import emulated
from benchmarks.passport.exact_numbers import Array

LIBRARIES = {"library": "native", "arm64": "arm64"}
"""For which processor the library of a way is."""


class NotPossible(Exception):
    """A program cannot run in a way, and the documentation says so: LAPACK in a C library."""


class EngineWithOptions:
    """An engine whose `function` has further options; everything else is the engine's own."""

    def __init__(self, module: Any, options: dict[str, Any]) -> None:
        self._module, self._options = module, options

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def function(self, f: Callable[..., Any], **options: Any) -> Any:
        """The engine's function with the options of the way."""
        return self._module.function(f, **{**self._options, **options})


@dataclass(frozen=True)
class Way:
    """How programs run.

    Attributes
    ----------
    engine : "dynamic" or "static".
    fuse : whether loops become one.
    interpret : whether graphs run node by node.
    through : "" or, of pure functions, "saved" for a file and back, "library" for a C library, "arm64" for one
        of another processor, emulated, "module" for a numba module.
    """

    engine: str
    fuse: bool = True
    interpret: bool = False
    through: str = ""

    @cached_property
    def tw(self) -> Any:
        """The engine, as programs use it."""
        module = importlib.import_module(self.engine)
        if self.engine == "dynamic":
            return module
        return EngineWithOptions(module, {"fuse": self.fuse, "interpret": self.interpret})

    def call(self, f: Callable[..., Any], given: Sequence[Array]) -> list[Any]:
        """The results of a pure function of arrays."""
        if self.through in LIBRARIES:
            return _by_library(f, given, LIBRARIES[self.through])
        if self.through == "module":
            return _by_module(f, given)
        compiled = self.tw.function(f)
        found: list[Any] = compiled(*given)
        if self.through == "saved":
            with tempfile.TemporaryDirectory(prefix="twingrad-") as folder:
                path = Path(folder) / "program.tw"
                self.tw.save(compiled, path)
                found = self.tw.load(path)(*given)
        return found


def _by_library(f: Callable[..., Any], given: Sequence[Array], cpu: str) -> list[Any]:
    """The results of a function as a C library; results that are no results of its kernels are those of the program."""
    import static
    from common.core.errors import ArgumentError

    found = list(static.function(f)(*given))
    with tempfile.TemporaryDirectory(prefix="twingrad-") as folder:
        try:
            made = static.export_library(f, Path(folder) / "program.so", *given, name="program", cpu=cpu)
        except ArgumentError as error:
            raise NotPossible(str(error)) from error
        sizes = [_size(name, given) for name in made.sizes]
        named = {f"x{i}": x for i, x in enumerate(given)} | made.state
        for i, name in zip((i for i, x in enumerate(found) if x is not None), made.results, strict=True):
            found[i] = named.setdefault(name, np.empty(tuple(found[i].shape), found[i].dtype))
        arrays = [named[p.name] if p.written else np.ascontiguousarray(named[p.name]) for p in made.parameters]
        if cpu == "arm64":
            emulated.call(made, sizes, arrays)
        else:
            _call(made, sizes, arrays)
    return found


def _call(made: Any, sizes: Sequence[int], arrays: Sequence[Array]) -> None:
    library = ctypes.CDLL(str(made.library))
    library.program_workspace.restype = ctypes.c_int64
    lengths = [ctypes.c_int64(n) for n in sizes]
    workspace = (ctypes.c_char * max(1, library.program_workspace(*lengths)))()
    code = library.program(*lengths, *(ctypes.c_void_p(x.ctypes.data) for x in arrays), workspace)
    if code:
        raise ValueError(f"the library ended with code {code}")


def _by_module(f: Callable[..., Any], given: Sequence[Array]) -> list[Any]:
    """The results of a function as a file that imports numpy and numba."""
    import static
    from common.core.errors import ArgumentError

    found = list(static.function(f)(*given))
    with tempfile.TemporaryDirectory(prefix="twingrad-") as folder:
        try:
            made = static.export_numba(f, Path(folder) / "program.py", *given, name="program")
        except ArgumentError as error:
            raise NotPossible(str(error)) from error
        scope: dict[str, Any] = {}
        exec(compile(made.path.read_text().replace("(cache=True)", ""), str(made.path), "exec"), scope)
        results = scope["program"](*given, *made.state.values())
    results = results if isinstance(results, tuple) else (results,)
    for place, x in zip([i for i, x in enumerate(found) if x is not None], results, strict=True):
        found[place] = x
    return found


def _size(name: str, given: Sequence[Array]) -> int:
    """The size that a library calls so: "x3_1" is that of the second dimension of the fourth argument."""
    argument, _, dimension = name.removeprefix("x").partition("_")
    return given[int(argument)].shape[int(dimension)]
