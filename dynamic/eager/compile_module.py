"""`compile`: the other engine compiles the module, this one runs it as it is."""

from __future__ import annotations

from typing import Any

from common.api.machine.scripting import without
from common.nn.module import Module
from dynamic.eager.function import function


def compile(target: Any = None, **options: Any) -> Any:
    """A module as it is, or a function as `function` makes it; the same call compiles in the other engine.

    Parameters
    ----------
    target : a module, or a function; omitted when used as a decorator with options.
    options : of `function`; PyTorch's `mode`, `fullgraph`, `dynamic`, `backend`, `options`, `disable` change nothing.
    """
    chosen = without(options)
    if isinstance(target, Module):
        function(**chosen)  # refuses options that there are not
        return target
    return function(target, **chosen)
