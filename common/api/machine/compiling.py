"""Switches and questions of PyTorch's compiler, which programs carry with them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError

__all__ = [
    "allow_in_graph", "assume_constant_result", "cudagraph_mark_step_begin", "disable", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance",
]  # fmt: skip

#: PyTorch's, of which the first is here.
STANCES = (
    "default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile",
)  # fmt: skip


class Switches(ModuleType):
    """Options of PyTorch's compiler: any may be set, and then has its value; none changes anything."""

    cache_size_limit = recompile_limit = 8
    suppress_errors = verbose = dynamic_shapes = False


@contextlib.contextmanager
def TransformGetItemToIndex() -> Iterator[None]:
    """A block in which tensors index others under `vmap`, as they do everywhere here."""
    yield


def is_compile_supported(device_type: str) -> bool:
    """Whether the engines' `compile` works for a device: for the CPU, which is the only one."""
    return device_type == "cpu"


def is_compiling() -> bool:
    """Whether a function is being traced."""
    return mode.current_trace() is not None


def is_dynamo_compiling() -> bool:
    """Whether a function is being traced."""
    return is_compiling()


def is_exporting() -> bool:
    """False: what is written to a file has been traced before."""
    return False


def list_backends(exclude_tags: Any = None) -> list[str]:
    """The compilers there are: of LLVM, our own translation and numba's."""
    return ["llvm", "numba"]


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no CUDA graphs."""


def reset() -> None:
    """Nothing: traces belong to the functions that they were made of, and go with them."""


def mark_sizes(t: Any, index: Any = None, **bounds: Any) -> None:
    """Nothing: which sizes of an argument are open follows from the calls; `mark_dynamic` and others in PyTorch."""


def _unchanged(name: str, fn: Any) -> Any:
    if fn is None:
        return lambda function: _unchanged(name, function)
    if not callable(fn):
        raise ArgumentError(f"compiler.{name}(): a function is needed, not {type(fn).__name__}")
    return fn


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function, or a decorator of one, as it is: inside a traced function it is traced with it.

    Parameters
    ----------
    fn : function.
    recursive, reason : accepted.

    Raises
    ------
    ArgumentError : it is no function.
    """
    return _unchanged("disable", fn)


def allow_in_graph(fn: Callable[..., Any]) -> Any:
    """A function as it is: all of them may stand in a traced one.

    Raises
    ------
    ArgumentError : it is no function.
    """
    return _unchanged("allow_in_graph", fn)


def assume_constant_result(fn: Callable[..., Any]) -> Any:
    """A function as it is: what it computes of no tensor is a constant of the trace anyway.

    Raises
    ------
    ArgumentError : it is no function.
    """
    return _unchanged("assume_constant_result", fn)


class set_stance:
    """Set how a compiled function answers a call that it has no program for; as a call, a block or a decorator.

    Parameters
    ----------
    stance : "default", the only one that there is: a program is made for every new structure of a call.
    skip_guard_eval_unsafe, force_backend : accepted.

    Raises
    ------
    ArgumentError : another stance; call ``fn.__wrapped__`` to run a function uncompiled.
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance not in STANCES:
            raise ArgumentError(f"compiler.set_stance(): stance must be one of {STANCES}, got {stance!r}")
        if stance != "default":
            raise ArgumentError(
                f"compiler.set_stance(): there is no stance but 'default', got {stance!r}; without @function a program "
                "runs eagerly"
            )
        self.stance = stance

    def __enter__(self) -> set_stance:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __call__(self, fn: Any) -> Any:
        """Decorate a function: it is called as it is."""
        return _unchanged("set_stance", fn)
