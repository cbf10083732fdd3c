"""What libraries tell PyTorch's C++ layer, and ask of it: nothing is counted, traced or dispatched by keys here."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

from common.core.devices import CPU
from common.core.devices import device as TheDevice
from common.methods.conversions import target_of
from common.tensor.base import Tensor, TensorBase

_TensorMeta = type(Tensor)


def _log_api_usage_once(*event: Any) -> None:
    """Nothing: no use is counted."""


def _get_tracing_state() -> None:
    """None, as outside `torch.jit.trace`: a traced program runs as it does eagerly."""


def _are_functorch_transforms_active() -> bool:
    """False: functions take the values of `func`'s transforms as they take tensors."""
    return False


def _jit_set_profiling_mode(*switch: Any) -> bool:
    """False: TorchScript's switches change nothing."""
    return False


_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_set_nvfuser_enabled = _jit_set_profiling_mode
_jit_set_profiling_executor = _jit_set_texpr_fuser_enabled = _jit_set_profiling_mode


def _parse_to(
    *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> tuple[TheDevice | None, Any, bool, Any]:
    """The device, the dtype and the two further arguments that a call of `Tensor.to` means; None for what it leaves."""
    first = args[0] if args and not isinstance(args[0], bool) else device
    meant = target_of("to", args, dtype, device)
    return (CPU if isinstance(first, (TensorBase, TheDevice, str, int)) else None, meant, non_blocking, memory_format)


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
