"""`jit` and `compile` of PyTorch, in terms of `function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError
from common.nn.module import Module

#: Annotations of what TorchScript takes as a number or a list of it.
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list

#: Options of PyTorch's `compile` that change nothing here.
ACCEPTED = {"mode": None, "fullgraph": None, "dynamic": None, "backend": None, "disable": None, "options": None}


class ScriptModule(Module):
    """A module that `jit` has made; compiled modules are of this class."""


class TracerWarning(Warning):
    """What PyTorch warns of in a trace, where it is an error here; programs filter it."""


def make(
    compiled: Callable[..., Any],
    write: Callable[..., Any] | None = None,
    read: Callable[..., Any] | None = None,
) -> dict[str, Any]:
    """The functions of `jit` for an engine.

    Parameters
    ----------
    compiled : ``compiled(target, **options)`` is the engine's own: a module, or a function.
    write, read : ``write(target, path)`` writes a program, ``read(path)`` reads it; None for an engine that makes none.
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

    def freeze(mod: Any, *args: Any, **options: Any) -> Any:
        """The module itself; parameters are read anew at each call."""
        return mod

    def optimize_for_inference(mod: Any, *args: Any, **options: Any) -> Any:
        """The module itself: whatever is compiled is optimised."""
        return mod

    def annotate(the_type: Any, the_value: Any) -> Any:
        """The value: Python knows its type."""
        return the_value

    def save(m: Any, f: Any, _extra_files: Any = None) -> None:
        """Write the program of what `trace` or `script` gave to a file, with its state.

        Parameters
        ----------
        m : module or function that has been called: its program is that of the calls.
        f : path, or file opened for writing bytes.

        Raises
        ------
        ArgumentError : the engine makes no programs, or it has not been called yet.
        """
        if write is None:
            raise ArgumentError(
                "jit.save(): an eager engine has no program to write; use static.jit.trace and static.jit.save, or "
                "save(module.state_dict(), f)"
            )
        refuse_extra_files("jit.save", _extra_files)
        write(m, f)

    def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
        """The program of a file that `save` wrote.

        Parameters
        ----------
        f : path, or file opened for reading bytes.
        map_location, _restore_shapes : accepted.

        Raises
        ------
        ArgumentError : the engine runs no programs.
        StateError : the file is damaged, or holds no program.
        """
        if read is None:
            raise ArgumentError("jit.load(): an eager engine runs no programs; use static.jit.load(f)")
        refuse_extra_files("jit.load", _extra_files)
        return read(f)

    def trace_module(mod: Any, inputs: Any, **options: Any) -> Any:
        """A module as `trace` makes it.

        Parameters
        ----------
        mod : module.
        inputs : name of a method -> arguments to call it with once; only "forward" is traced.
        options : PyTorch's, accepted.
        """
        return trace(mod, inputs.get("forward") if isinstance(inputs, dict) else inputs)

    functions = (
        trace, script, is_scripting, is_tracing, freeze, trace_module, optimize_for_inference, annotate, save, load,
    )  # fmt: skip
    made = {f.__name__: f for f in functions}
    return {
        **made, "ScriptModule": ScriptModule, "script_if_tracing": script, "_script_if_tracing": script,
        **dict.fromkeys(
            ("export", "ignore", "interface", "script_method", "unused", "_overload", "_overload_method"), unchanged
        ),
        "TracerWarning": TracerWarning,
    }  # fmt: skip


def refuse_extra_files(who: str, extra: Any) -> None:
    """Refuse files that PyTorch puts into the file of a program.

    Raises
    ------
    ArgumentError : there are some.
    """
    if extra:
        raise ArgumentError(f"{who}(): there is no place for extra files: write files of your own beside it")


def without(options: dict[str, Any]) -> dict[str, Any]:
    """Options of PyTorch's `compile` without those that change nothing here."""
    return {name: value for name, value in options.items() if name not in ACCEPTED}
