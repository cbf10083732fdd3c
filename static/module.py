"""`compile`: a module whose `forward` is compiled, in the place of the module in a training script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.nn.module import Module
from static.jit import Function, function


def compile(target: Any = None, **options: Any) -> Any:
    """A module that computes as `target` does, with `forward` compiled; or a compiled function.

    The result is of a subclass of the module's class and shares everything with it: parameters, buffers, sub-modules,
    hooks, `training`, and the names in `state_dict`. Called on tensors of the eager engine it returns tensors with
    history: `loss.backward()` fills `.grad` of the same parameters, which the same optimizer updates.

    Parameters
    ----------
    target : a module, or a function; omitted when used as a decorator with options.
    options : of `function`.

    Examples
    --------
    >>> import numpy as np, static
    >>> layer = static.nn.Linear(3, 2)
    >>> fast = static.compile(layer)
    >>> fast.weight is layer.weight, isinstance(fast, static.nn.Linear)
    (True, True)
    """
    if not isinstance(target, Module):
        return function(target, **options)
    kind = type(target)
    forward: Callable[..., Any] = Function(kind.forward, **options)
    members = {"forward": forward, "__module__": kind.__module__}
    made: Any = object.__new__(type(f"Compiled{kind.__name__}", (kind,), members))
    object.__setattr__(made, "__dict__", target.__dict__)
    return made
