"""Functions of both engines that take programs, too."""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from static.jit.compile_module import CompiledModule
from static.jit.function import CompiledFunction


def bind_trace(matrix: Callable[..., Any]) -> Callable[..., Any]:
    """`trace` of a matrix, and of a function."""

    @functools.wraps(matrix)
    def trace(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not callable(x):
            return matrix(x, *args, **kwargs)
        from static.export.held_graph import trace

        return trace(x, *args, **kwargs)

    trace.__doc__ = f"""{matrix.__doc__ or ""}

    Of a function, with arguments to trace it for, its program as a networkx DAG: see `static.export.held_graph.trace`.
    """
    return trace


def bind_save(tensors: Callable[..., Any]) -> Callable[..., Any]:
    """`save` of tensors, and of a compiled function."""

    @functools.wraps(tensors)
    def save(obj: Any, f: Any, **options: Any) -> None:
        if not isinstance(obj, (CompiledFunction, CompiledModule)):
            tensors(obj, f, **options)
            return
        from static.export.program_file import save

        save(obj, f, native=bool(options.get("native", False)))

    save.__doc__ = f"""{tensors.__doc__ or ""}

    Of a compiled function, its program with all state: see `static.export.program_file.save`.
    """
    return save


def bind_load(tensors: Callable[..., Any]) -> Callable[..., Any]:
    """`load` of what either `save` has written."""

    @functools.wraps(tensors)
    def load(f: Any, *args: Any, **kwargs: Any) -> Any:
        from static.export.program_file import is_program, of_bytes

        name = str(getattr(f, "name", "the file")) if hasattr(f, "read") else os.fspath(f)
        data: bytes = f.read() if hasattr(f, "read") else Path(f).read_bytes()
        if is_program(data):
            return of_bytes(data, name, native=bool(kwargs.get("native", False)))
        given = io.BytesIO(data)
        given.name = name
        return tensors(given, *args, **{k: x for k, x in kwargs.items() if k != "native"})

    load.__doc__ = f"""{tensors.__doc__ or ""}

    Of the file of a compiled function, the function: see `static.export.program_file.load`.
    """
    return load
