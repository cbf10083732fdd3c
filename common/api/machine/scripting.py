"""`jit` and `compile` of PyTorch, in terms of `function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError

#: Options of PyTorch's `compile` that change nothing here.
ACCEPTED = {"mode": None, "fullgraph": None, "dynamic": None, "backend": None, "disable": None, "options": None}


def make(compiled: Callable[..., Any]) -> dict[str, Any]:
    """The functions of `jit` for an engine.

    Parameters
    ----------
    compiled : ``compiled(target, **options)`` is the engine's own: a module, or a function.
    """

    def trace(func: Any = None, example_inputs: Any = None, **options: Any) -> Any:
        """A function or module as the engine's `function` makes it; a trace is made for every new structure of a call.

        Parameters
        ----------
        func : function or module.
        example_inputs : arguments to call it with once, one or a tuple.
        options : PyTorch's, accepted.
        """
        if not callable(func):
            raise ArgumentError(f"jit.trace(): a function or module is needed, not {type(func).__name__}")
        made = compiled(func)
        if example_inputs is not None:
            with mode.GradSwitch(False):
                made(*example_inputs) if isinstance(example_inputs, tuple) else made(example_inputs)
        return made

    def script(obj: Any = None, **options: Any) -> Any:
        """A function or module whose `if`, `while` and `for` the engine's `function` converts; a class as it is.

        Parameters
        ----------
        obj : function, module or class.
        options : PyTorch's, accepted.
        """
        if isinstance(obj, type):
            return obj
        if not callable(obj):
            raise ArgumentError(f"jit.script(): a function, module or class is needed, not {type(obj).__name__}")
        return compiled(obj, control_flow="convert")

    def unchanged(fn: Any = None, **options: Any) -> Any:
        """A decorator that leaves a function as it is."""
        return fn if callable(fn) else lambda function: function

    def is_scripting() -> bool:
        """False: Python runs, also while a program is traced."""
        return False

    def is_tracing() -> bool:
        """Whether a function is being traced."""
        return mode.current_trace() is not None

    def freeze(mod: Any, **options: Any) -> Any:
        """The module itself; parameters are read anew at each call."""
        return mod

    def trace_module(mod: Any, inputs: Any, **options: Any) -> Any:
        """A module as `trace` makes it.

        Parameters
        ----------
        mod : module.
        inputs : name of a method -> arguments to call it with once; only "forward" is traced.
        options : PyTorch's, accepted.
        """
        return trace(mod, inputs.get("forward") if isinstance(inputs, dict) else inputs)

    made = {f.__name__: f for f in (trace, script, is_scripting, is_tracing, freeze, trace_module)}
    return {**made, **dict.fromkeys(("export", "ignore", "script_method", "unused"), unchanged)}


def without(options: dict[str, Any]) -> dict[str, Any]:
    """Options of PyTorch's `compile` without those that change nothing here."""
    return {name: value for name, value in options.items() if name not in ACCEPTED}
