"""`DataParallel` on the one device that there is, and modules of groups of processes, which programs only name."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from common.core.devices import on_cpu
from common.core.errors import ArgumentError, DeviceError
from common.core.tree import flatten
from common.nn.module import Module
from common.nn.normalization import _BatchNorm
from common.tensor.base import TensorBase

#: Why there are no modules of several processes; the first words are PyTorch's.
NO_GROUP = (
    "Default process group has not been initialized: there are no distributed programs of this kind; "
    "parallel.GlobalBatch trains in several processes, and one uses the cores of a machine"
)


class DataParallel(Module):
    """A module around another, which it calls: there is one device. `set_num_threads` uses the cores of the CPU.

    Parameters
    ----------
    module : the other one; names in `state_dict` begin with "module.".
    device_ids, output_device : accepted where they name no device.
    dim : accepted; nothing is divided.

    Raises
    ------
    ArgumentError : `module` is no module.
    DeviceError : another device than the CPU.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise ArgumentError(f"DataParallel(): argument 'module' must be Module, not {type(module).__name__}")
        for device in (*(device_ids or ()), output_device):
            on_cpu(device, "DataParallel")
        self.module, self.dim = module, dim
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
    module_kwargs: Any = None,
) -> Any:  # fmt: skip
    """Call a module on the one device that there is.

    Parameters
    ----------
    module : called with the inputs.
    inputs : a tensor, or a tuple of arguments.
    device_ids, output_device, dim : see `DataParallel`.
    module_kwargs : arguments by name.

    Raises
    ------
    ArgumentError : `module` is no module.
    DeviceError : another device than the CPU.
    """
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*given, **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """A class that programs name, in ``isinstance``: it has no objects.

    Raises
    ------
    ArgumentError : one is made; `parallel.GlobalBatch` trains in several processes.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ArgumentError(f"DistributedDataParallel(): {NO_GROUP}")


class SyncBatchNorm(_BatchNorm):
    """A class that programs name, in ``isinstance``: it has no objects. In one process BatchNorm sees all of a batch.

    Raises
    ------
    ArgumentError : one is made.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ArgumentError(f"SyncBatchNorm(): {NO_GROUP}; BatchNorm1d, 2d and 3d normalise the batch of one process")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> NoReturn:
        """Refused, as is making one.

        Raises
        ------
        ArgumentError : always.
        """
        raise ArgumentError(f"SyncBatchNorm.convert_sync_batchnorm(): {NO_GROUP}; leave the module as it is")


def _of_devices(name: str) -> type:
    """A name of PyTorch's inner machinery of several devices, which programs import beside what they use."""

    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise DeviceError(
            f"nn.parallel: {name}: there is no GPU and no device but the CPU; DataParallel calls the module"
        )

    says = "Refused: there is one device.\n\nRaises\n------\nDeviceError : it is made or applied.\n"
    return type(name, (), {"__new__": refuse, "apply": classmethod(refuse), "__doc__": says, "__module__": __name__})


def _get_stream(device: Any) -> None:
    """The stream on which a device copies: the CPU has none."""
    on_cpu(device, "_get_stream")


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device: -1 of the CPU."""
    on_cpu(device, "_get_device_index")
    return -1


def get_a_var(obj: Any) -> Any:
    """The first tensor among arguments in lists, tuples and dicts; None if there is none."""
    return next((x for x in flatten(obj)[0] if isinstance(x, TensorBase)), None)


class ExceptionWrapper:
    """An error of another thread, to be raised in this one.

    Parameters
    ----------
    exc_info : of `sys.exc_info`; by default the error that is being handled.
    where : in which thread, for the message.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        self.error = (exc_info or sys.exc_info())[1]
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise the error, with a note where it was raised first."""
        if self.error is None:
            raise ArgumentError("ExceptionWrapper.reraise(): there was no error")
        self.error.add_note(f"Caught {type(self.error).__name__} {self.where}.")
        raise self.error


Broadcast, Gather, ReduceAddCoalesced, Scatter = map(
    _of_devices, ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]
)
gather, scatter, scatter_kwargs = map(_of_devices, ["gather", "scatter", "scatter_kwargs"])
parallel_apply, replicate = map(_of_devices, ["parallel_apply", "replicate"])
