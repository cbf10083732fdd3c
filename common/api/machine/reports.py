"""What libraries tell PyTorch's C++ layer, and ask of it: nothing is counted, traced or dispatched by keys here."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator
from typing import Any


def _log_api_usage_once(*event: Any) -> None:
    """Nothing: no use is counted."""


def _get_tracing_state() -> None:
    """None, as outside `torch.jit.trace`: a traced program runs as it does eagerly."""


def _disabled_torch_function_impl(func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Call a function: no class of tensors is asked before it."""
    return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def DisableTorchFunctionSubclass() -> Iterator[None]:
    """A block in which no class of tensors is asked before a function runs, as nowhere."""
    yield


class DispatchKey(enum.Enum):
    """What PyTorch chooses kernels by; here there is one kernel of each operator."""

    CPU, CUDA, Meta, Autograd, AutogradCPU, AutogradCUDA, AutocastCPU, AutocastCUDA, AutocastXPU = range(9)


class DispatchKeySet(frozenset[DispatchKey]):
    """Some of them."""

    def __new__(cls, key: DispatchKey) -> DispatchKeySet:
        """A set of one."""
        return super().__new__(cls, (key,))


@contextlib.contextmanager
def _ExcludeDispatchKeyGuard(keys: Any) -> Iterator[None]:
    """A block in which nothing is chosen by some of them, as nowhere."""
    yield
