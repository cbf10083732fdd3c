"""The part of `Module` that converts everything: dtypes, and devices, of which there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from common.core.devices import on_cpu
from common.core.dtypes import SUPPORTED, unsupported
from common.core.errors import DeviceError, DTypeError, MissingAttributeError
from common.methods.conversions import target_of
from common.nn.class_functions import HoldsFunctions
from common.tensor.arrays import to_array
from common.tensor.base import TensorBase
from common.tensor.leaf import Leaf

C = TypeVar("C", bound="Convertible")


class Convertible(HoldsFunctions):
    """The conversions of a module's parameters and buffers."""

    if TYPE_CHECKING:

        def _named_leaves(self, prefix: str) -> Iterator[tuple[str, Any]]: ...

        def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
            """See `Module`."""

    def to_empty(self: C, *, device: Any = None, recurse: bool = True) -> C:
        """Give all parameters and buffers memory on a device, which here is the CPU, where they have it.

        Raises
        ------
        DeviceError : another device.
        """
        on_cpu(device, "Module.to_empty")
        return self

    def __delattr__(self, name: str) -> None:
        if name not in self.__dict__:
            raise MissingAttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=None
            )
        object.__delattr__(self, name)

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """What a function of a module gives, pairs of names and objects, of all modules, with qualified names."""
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix) if recurse else [(prefix, self)]  # type: ignore[attr-defined]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is not None and id(member) not in seen:
                    if remove_duplicate:
                        seen.add(id(member))
                    yield f"{path}.{name}" if path else name, member

    def to(
        self: C,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> C:
        """Convert all floating-point parameters and buffers, in place; gradients are forgotten.

        Parameters
        ----------
        args : a dtype; or a device, which is the CPU, and perhaps a dtype; or a tensor, whose dtype is meant.
        dtype, device : the same by name.
        non_blocking, memory_format : accepted; they change nothing.

        Raises
        ------
        DTypeError : `dtype` is not float32 or float64.
        DeviceError : another device than the CPU.
        """
        wanted = target_of("Module.to", args, dtype, device)
        if wanted is None:
            return self
        if wanted.kind != "f":
            raise DTypeError(f"Module.to only accepts floating point dtypes, but got {wanted}")
        if wanted not in SUPPORTED:
            raise unsupported(wanted, "Module.to: ")
        for _, leaf in self._named_leaves(""):
            if isinstance(leaf, Leaf) and leaf.dtype.kind == "f" and leaf.dtype != wanted:
                leaf.payload, leaf.grad = to_array(leaf.payload, wanted), None
        for module in self.modules():
            recorded = {name: x for name, x in module._buffers.items() if x is not None and not isinstance(x, Leaf)}
            module._buffers.update({name: x.to(wanted) for name, x in recorded.items() if x.dtype.kind == "f"})
        return self

    def share_memory(self: C) -> C:
        """Move parameters and buffers to memory that forked processes share; see `Tensor.share_memory_`."""
        for _, leaf in self._named_leaves(""):
            if isinstance(leaf, TensorBase):
                leaf.share_memory_()
        return self

    def cpu(self: C) -> C:
        """The module itself, which is on the CPU."""
        return self

    def cuda(self: C, device: Any = None) -> C:
        """Refused: there is no GPU.

        Raises
        ------
        DeviceError : always.
        """
        raise DeviceError("Module.cuda(): there is no GPU and no device but the CPU; leave it out, or ask "
                          "cuda.is_available() first")  # fmt: skip

    def type(self: C, dst_type: Any) -> C:
        """``to(dtype)``; PyTorch's names of types are taken, too."""
        return self.to(dst_type)

    def double(self: C) -> C:
        """``to(float64)``."""
        return self.to(np.float64)

    def float(self: C) -> C:
        """``to(float32)``."""
        return self.to(np.float32)
