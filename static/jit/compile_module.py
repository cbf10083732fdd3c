"""`compile`: a module whose `forward` is compiled, in the place of the module in a training script."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from common.api.machine.scripting import ScriptModule, without
from common.core.pickling import refuse_local
from common.nn.module import Module
from common.nn.tables import TABLES
from static.jit.function import CompiledFunction, function
from static.jit.shown import program_files

OF_PROGRAM = ("code", "dump", "explain", "graph", "llvm", "picture", "source")
"""Attributes of a compiled module that its compiled `forward` has, unless the module has something of this name."""


class CompiledModule(ScriptModule):
    """A compiled module, as `compile` returns it: a copy, or a pickle, is one of the module, and is compiled again.

    Attributes
    ----------
    _plain : the module, which shares everything with this one.
    _options : of `function`.
    """

    _plain: Module
    _options: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        if any(name in self.__dict__[table] for table in TABLES):
            return super().__getattr__(name)
        if name in OF_PROGRAM:
            return getattr(type(self).forward, name)
        return self._save if name == "save" else super().__getattr__(name)

    def _save(self, f: Any) -> None:
        program_files().save(self, f)

    def __copy__(self) -> Any:
        return compile(copy.copy(self._plain), **self._options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return compile(copy.deepcopy(self._plain, memo), **copy.deepcopy(self._options, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        for x in self._options.values():
            refuse_local(x, f"static.compile({type(self._plain).__name__}(...), ...)")
        return _compiled_again, (self._plain, self._options)


def _compiled_again(plain: Module, options: dict[str, Any]) -> Any:
    return compile(plain, **options)


def compile(target: Any = None, **options: Any) -> Any:
    """A module that computes as `target` does, with `forward` compiled; or a compiled function.

    The result is of a subclass of the module's class and shares everything with it: parameters, buffers, sub-modules,
    hooks, `training`, and the names in `state_dict`. Called on tensors of the eager engine it returns tensors with
    history: `loss.backward()` fills `.grad` of the same parameters, which the same optimizer updates.

    Parameters
    ----------
    target : a module, or a function; omitted when used as a decorator with options.
    options : of `function`; PyTorch's `mode`, `fullgraph`, `dynamic`, `backend`, `options`, `disable` change nothing.

    Examples
    --------
    >>> import numpy as np, static
    >>> layer = static.nn.Linear(3, 2)
    >>> fast = static.compile(layer)
    >>> fast.weight is layer.weight, isinstance(fast, static.nn.Linear)
    (True, True)
    """
    options = without(options)
    if not isinstance(target, Module):
        return function(target, **options)
    kind = type(target)
    forward: Callable[..., Any] = CompiledFunction(kind.forward, **options)
    members = {"forward": forward, "__module__": kind.__module__, "_plain": target, "_options": options}
    bases = (kind,) if issubclass(kind, CompiledModule) else (CompiledModule, kind)
    made: Any = object.__new__(type(f"Compiled{kind.__name__}", bases, members))
    object.__setattr__(made, "__dict__", target.__dict__)
    return made
