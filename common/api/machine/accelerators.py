"""Devices that are not there: `cuda`, `mps`, `xpu`, `accelerator`. Questions are answered, requests are refused."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from common.core.devices import CPU, device
from common.core.errors import AllocationError, ArgumentError, DeviceError
from common.nn.parallel import NO_GROUP

_NONE = "there is no GPU and no device but the CPU"


def _answer(name: str, value: Any, says: str) -> Callable[..., Any]:
    def answer(*args: Any, **options: Any) -> Any:
        return value

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = says
    return answer


def _refusal(space: str, name: str) -> Any:
    def refuse(*args: Any, **options: Any) -> NoReturn:
        raise DeviceError(f"{space}.{name}(): {_NONE}; ask {space}.is_available() first")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refused: {_NONE}.\n\nRaises\n------\nDeviceError : always.\n"
    if name[0].isupper():  # a class, which programs name in annotations and ``isinstance``
        return type(name, (), {"__init__": refuse, "__doc__": refuse.__doc__, "__module__": space})
    return refuse


def _questions(*names: str) -> dict[str, Any]:
    return {name: _answer(name, False, f"False: {_NONE}.") for name in names}


def _zeros(*names: str) -> dict[str, Any]:
    return {name: _answer(name, 0, f"0: {_NONE}.") for name in names}


def _nothing(*names: str) -> dict[str, Any]:
    return {name: _answer(name, None, f"Nothing: {_NONE}.") for name in names}


def _refusals(space: str, *names: str) -> dict[str, Any]:
    return {name: _refusal(space, name) for name in names}


def get_rng_state_all() -> list[Any]:
    """The states of the generators of all devices, of which there are none."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Set what `get_rng_state_all` has given.

    Raises
    ------
    DeviceError : there is a state of a device.
    """
    if len(list(new_states)):
        raise DeviceError(f"set_rng_state_all(): {_NONE}; there are states of {len(list(new_states))} devices")


_RANDOM = ("manual_seed", "manual_seed_all", "seed", "seed_all")
CUDA: dict[str, Any] = {
    **_questions("is_available", "is_bf16_supported", "is_initialized", "is_current_stream_capturing"),
    **_zeros("device_count", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
             "max_memory_cached", "memory_cached"),
    **_nothing(*_RANDOM, "empty_cache", "ipc_collect", "init", "reset_peak_memory_stats",
               "reset_max_memory_allocated", "set_per_process_memory_fraction"),
    **_refusals(
        "cuda", "current_device", "current_stream", "default_stream", "device", "get_device_capability",
        "get_device_name", "get_device_properties", "get_rng_state", "mem_get_info",
        "memory_stats", "memory_summary", "set_device", "set_rng_state", "stream", "synchronize",
        "Event", "Stream", "StreamContext", "CUDAGraph", "graph", "make_graphed_callables", "utilization",
        "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "IntTensor", "LongTensor",
        "ShortTensor", "HalfTensor", "BFloat16Tensor",
    ),
    "get_rng_state_all": get_rng_state_all,
    "set_rng_state_all": set_rng_state_all,
    "OutOfMemoryError": AllocationError,
    "_initialized": False,
}  # fmt: skip
MPS: dict[str, Any] = {
    **_questions("is_available"),
    **_zeros("device_count", "current_allocated_memory", "driver_allocated_memory", "recommended_max_memory"),
    **_nothing("manual_seed", "seed", "empty_cache", "set_per_process_memory_fraction"),
    **_refusals("mps", "get_rng_state", "set_rng_state", "synchronize"),
}
XPU: dict[str, Any] = {
    **_questions("is_available", "is_initialized"),
    **_zeros("device_count", "max_memory_allocated", "memory_allocated"),
    **_nothing(*_RANDOM, "empty_cache"),
    "get_rng_state_all": get_rng_state_all,
    "set_rng_state_all": set_rng_state_all,
    **_refusals("xpu", "current_device", "device", "get_device_name", "set_device", "synchronize"),
}


def current_accelerator(check_available: bool = False) -> device | None:
    """None: there is no accelerator."""
    return None


@contextlib.contextmanager
def device_index(device: int | None) -> Iterator[None]:
    """A block on one of the accelerators; None, the only number there can be, changes nothing."""
    if device is not None:
        raise DeviceError(f"accelerator.device_index(): {_NONE}; ask accelerator.is_available() first")
    yield


ACCELERATOR: dict[str, Any] = {
    **_questions("is_available"),
    **_zeros("device_count", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved"),
    **_nothing("empty_cache", "reset_peak_memory_stats"),
    **_refusals(
        "accelerator", "current_device_idx", "current_device_index", "current_stream", "get_device_capability",
        "set_device_idx", "set_device_index", "set_stream", "synchronize",
    ),
    "current_accelerator": current_accelerator,
    "device_index": device_index,
}  # fmt: skip


def _seconds(*args: Any, **options: Any) -> None:
    """Nothing: what is computed on the CPU is done when a call returns."""


def _no_group(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **options: Any) -> NoReturn:
        raise ArgumentError(f"distributed.{name}(): {NO_GROUP}; ask distributed.is_available() first")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refused: {NO_GROUP}.\n\nRaises\n------\nArgumentError : always.\n"
    return refuse


class ReduceOp(enum.Enum):
    """How reductions over processes combine; programs have members as defaults of arguments."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)


#: `distributed`: there are no groups of processes. Programs that can do without import their functions all the same.
DISTRIBUTED: dict[str, Any] = {
    **{
        name: _answer(name, False, "False: `parallel.GlobalBatch` trains in several processes.")
        for name in (
            "is_available", "is_initialized", "is_gloo_available", "is_mpi_available", "is_nccl_available",
            "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
        )
    },
    **{
        name: _no_group(name)
        for name in (
            "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "barrier",
            "broadcast", "broadcast_object_list", "destroy_process_group", "gather", "get_backend", "get_rank",
            "get_world_size", "init_process_group", "new_group", "recv", "reduce", "reduce_scatter", "scatter", "send",
        )
    },
    "ReduceOp": ReduceOp,
}  # fmt: skip

#: `cpu`, as the one device that is there.
CPU_SPACE: dict[str, Any] = {
    "is_available": _answer("is_available", True, "True."),
    "is_initialized": _answer("is_initialized", True, "True."),
    "device_count": _answer("device_count", 1, "1."),
    "current_device": _answer("current_device", str(CPU), "'cpu'."),
    "synchronize": _seconds,
}
