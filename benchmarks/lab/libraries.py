"""Libraries that import torch: each engine that is measured has modules of its own of them.

A library finds its engine when it is loaded, and keeps it in its classes and functions. So what was loaded with one
engine in PyTorch's place is put aside while the other, or PyTorch itself, is in use.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Set
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from common.api.as_torch import PLACES, TorchImports
from common.tensor.base import Tensor

PYTORCH = "torch"
"""In use at first: what is installed under that name, if anything."""
_IMPORT = re.compile(rb"^[ \t]*(?:import|from)[ \t]+(?:torch|functorch)\b", re.MULTILINE)
_OWN = frozenset({"dynamic", "static", "common", "benchmarks", "tests", "__main__"})
_SHARED = _OWN | sys.stdlib_module_names | {"numpy", "numba", "llvmlite", "networkx", "scipy", "safetensors"}
"""Packages that do not depend on torch as a whole."""

_HOME = Tensor.__module__

_before = frozenset(sys.modules)
_aside: dict[str, dict[str, ModuleType]] = {}
_used, _seen = PYTORCH, 0


@dataclass(frozen=True)
class InItsPlace:
    """A program's function: each call has the program's engine in PyTorch's place."""

    call: Any
    engine: str

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        if self.engine != _used:
            use(self.engine)
        return self.call(*arguments)

    def __getattr__(self, name: str) -> Any:
        """Any other attribute of the function."""
        return getattr(object.__getattribute__(self, "call"), name)


def package(engine: ModuleType) -> str:
    """Return the name of an engine's package, which is called torch while it is in use."""
    return engine.__spec__.name if engine.__spec__ else engine.__name__


def in_its_place(call: Any, engine: str) -> Any:
    """Return a function whose calls have an engine in PyTorch's place; itself, if no library has asked for torch."""
    return InItsPlace(call, engine) if PYTORCH in sys.modules else call


def use(engine: str) -> None:
    """From here on ``import torch`` means an engine, or with `PYTORCH` what is installed; in libraries, too.

    Parameters
    ----------
    engine : the name of its package.
    """
    global _used, _seen
    if engine == _used:
        return
    if len(sys.modules) != _seen:
        _aside[_used] = _of_torch()
    for parent, last, module in _staying_parents(_aside[_used]):
        if getattr(parent, last, None) is module:
            delattr(parent, last)
    for name in _aside[_used]:
        del sys.modules[name]
    _answer(_used, to_torch=False)
    _used = engine
    sys.modules.update(_aside.get(engine, {}))
    for parent, last, module in _staying_parents(_aside.get(engine, {})):
        setattr(parent, last, module)
    _answer(engine, to_torch=True)
    _seen = len(sys.modules) if engine in _aside else -1


def _staying_parents(moved: dict[str, ModuleType]) -> Iterator[tuple[ModuleType, str, ModuleType]]:
    """Each module of a package that stays where it is: the package, the module's name in it, the module."""
    for name, module in moved.items():
        parent, dot, last = name.rpartition(".")
        if dot and parent not in moved and parent in sys.modules:
            yield sys.modules[parent], last, module


def _answer(engine: str, to_torch: bool) -> None:
    """Let an engine answer to PyTorch's name, or only to its own."""
    if engine == PYTORCH:
        return
    if to_torch:
        sys.meta_path.insert(0, TorchImports(engine))
    else:
        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, TorchImports)]
    if PYTORCH in _aside.get(engine, ()):
        sys.modules[engine].__name__ = PYTORCH if to_torch else engine
        Tensor.__module__ = PYTORCH if to_torch else _HOME


def _of_torch() -> dict[str, ModuleType]:
    """PyTorch's modules, of whichever engine, and those that have been loaded with them in view."""
    tops = {name: name.partition(".")[0] for name in sys.modules}
    new = {
        name: x for name, x in sys.modules.items() if name not in _before and x is not None and tops[name] not in _OWN
    }
    asking = {name for name, module in new.items() if _asks(module)}
    found = {*PLACES, *(tops[name] for name in asking)} - _SHARED
    while True:
        others = {name: module for name, module in new.items() if tops[name] not in found | _SHARED}
        more = {tops[name] for name, module in others.items() if _has_of(module, found | _OWN)}
        if not more:
            break
        found |= more
    machine_code = tuple(EXTENSION_SUFFIXES)  # is loaded once per process
    using = {name: module for name, module in new.items() if name in asking or tops[name] in found}
    own = {name: x for name, x in using.items() if not (getattr(x, "__file__", None) or "").endswith(machine_code)}
    return own | {name: module for name, module in sys.modules.items() if tops[name] in PLACES}


def _asks(module: ModuleType) -> bool:
    """Whether a module's text imports torch, somewhere in it."""
    file = Path(getattr(module, "__file__", None) or "")
    return file.suffix == ".py" and file.is_file() and _IMPORT.search(file.read_bytes()) is not None


def _has_of(module: ModuleType, packages: Set[str]) -> bool:
    """Whether a module's names stand for something of these packages."""
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            home = value.__name__
        else:
            home = getattr(value if isinstance(value, type | FunctionType) else type(value), "__module__", "")
        if isinstance(home, str) and home.partition(".")[0] in packages:
            return True
    return False
