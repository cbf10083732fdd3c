"""`function`: runs as it is, and is differentiated as one node.

A compiled function is one node of an eager program's tape. So that both engines add gradients in the same order,
the eager `function` is one node too: the contributions to each argument and each captured tensor are totalled
inside, then contributed once (docs/numerics.md, point 5). What is recorded inside stays as the node's saved value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import MethodType
from typing import Any

from common.autograd.region_calls import run_region
from common.convert.runtime import convert
from common.core import mode
from common.core.int_arguments import callable_argument
from common.core.pickling import MadeCallable
from common.core.switching import Setting
from common.core.tree import flatten, unflatten
from common.tensor.boundary import refuse
from common.tensor.create import lift

_inside: ContextVar[bool] = ContextVar("twingrad_region", default=False)


def function(
    target: Callable[..., Any] | None = None,
    *,
    fuse: bool = True,
    compiler: str | None = None,
    share_memory: bool = True,
    interpret: bool = False,
    passes: Sequence[Callable[..., Any]] | None = None,
    max_traces: int = 64,
    control_flow: str | None = None,
    memory_budget: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """Run a function as it is; the same decorator compiles it in the other engine.

    Called from outside, it is differentiated as one node; inside another `function` or a trace it is a plain call.
    Arrays among the arguments become tensors. Numbers keep float64 precision and give way to the dtypes they meet.

    Parameters
    ----------
    target : the function; omitted when used as a decorator with options.
    fuse, compiler, share_memory, interpret, passes, max_traces, memory_budget, donate_argnums : options of the
        compiling engine, without effect here.
    control_flow : "convert" rewrites `if`, `while` and `for` as the other engine does, so that bits of gradients are
        equal; other values have no effect.

    Examples
    --------
    >>> import dynamic as tw
    >>> @tw.function
    ... def f(x):
    ...     return x * x
    >>> f(tw.tensor([3.0]))
    tensor([9.])
    """
    if target is None:
        return functools.partial(function, control_flow=control_flow)
    return EagerFunction(callable_argument(target, "function", "target"), control_flow)


class EagerFunction(MadeCallable):
    """A function that is differentiated as one node; made by `function`.

    Parameters
    ----------
    target, control_flow : see `function`.
    always : whether it is one node also inside another or a trace.
    """

    def __init__(self, target: Callable[..., Any], control_flow: str | None = None, always: bool = False) -> None:
        self.look_like(target)
        self._always = always
        self._target = convert(target) if control_flow == "convert" else target
        self._maker = "dynamic", "function", (target,), {"control_flow": control_flow}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function as one node, or plainly inside another or a trace if it is no transform."""
        target = self._target
        try:
            leaves, structure = flatten((args, kwargs))
            leaves = [lift(x) for x in leaves]
        except Exception as error:
            refuse(error, target, getattr(target, "__name__", "function"), *args, **kwargs)
            raise
        if not self._always and (_inside.get() or mode.current_trace() is not None):
            args, kwargs = unflatten(structure, leaves)
            return target(*args, **kwargs)
        token = _inside.set(True)
        try:
            return run_region(target, leaves, structure)
        finally:
            _inside.reset(token)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As an attribute of a class: a method."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<dynamic.function {getattr(self, '__qualname__', type(self._target).__name__)}>"


def inlining() -> Setting:
    """A context in which a `function` is a plain call, because something around it is one."""
    return Setting(_inside, True)
