"""`DataParallel` on the one device that there is."""

from __future__ import annotations

from typing import Any

from common.core.devices import on_cpu
from common.core.errors import ArgumentError
from common.nn.module import Module


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
