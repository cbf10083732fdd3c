"""`onnx` of PyTorch, in terms of the engine that has programs to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.core.errors import ArgumentError


def make(write: Callable[..., Any] | None) -> dict[str, Any]:
    """The functions of `onnx` for an engine.

    Parameters
    ----------
    write : ``write(function, path, *args, **kwargs)`` writes a model; None for an engine that makes no programs.
    """

    def export(model: Any, args: Any = (), f: Any = None, *, kwargs: Any = None, **options: Any) -> Any:
        """Write a module or a function as an ONNX model, see `export_onnx`.

        Parameters
        ----------
        model : module or function.
        args : an example of its arguments, one or a tuple.
        f : path of the file.
        kwargs : an example of its arguments by name.
        options : PyTorch's, accepted: names and open sizes follow from the trace.

        Returns
        -------
        Path
            Of the file.

        Raises
        ------
        ArgumentError : no path; an op has no counterpart in ONNX; or the engine makes no programs.
        """
        if write is None:
            raise ArgumentError(
                "onnx.export(): an eager engine has no program to write; use static.export_onnx(model, path, *args)"
            )
        if f is None:
            raise ArgumentError("onnx.export(): give f, the path of the file")
        return write(model, f, *(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))

    def is_in_onnx_export() -> bool:
        """False: a program is written after it has been traced."""
        return False

    def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
        """Accepted: the nodes that PyTorch's C++ tracer would write for such an operator are not written here."""

    return {
        "export": export, "is_in_onnx_export": is_in_onnx_export,
        "register_custom_op_symbolic": register_custom_op_symbolic,
    }  # fmt: skip


def parse_args(*kinds: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function for `register_custom_op_symbolic`: it stays as it is."""
    return lambda function: function


__all__ = ["make"]
