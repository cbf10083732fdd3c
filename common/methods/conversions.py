"""`to` and its kin: a tensor in another dtype; devices are accepted where they are the CPU."""

from __future__ import annotations

from functools import cache
from typing import Any, NoReturn

import numpy as np

from common.core import dtypes
from common.core.devices import CPU, is_device, on_cpu
from common.core.dispatch import Attrs, apply, known_attrs
from common.core.errors import ArgumentError, DeviceError, DTypeError
from common.core.op import REGISTRY
from common.tensor.arrays import known_dtype
from common.tensor.base import TensorBase

#: PyTorch's names of the types of tensors by dtype.
TYPE_NAMES = {
    "torch.FloatTensor": dtypes.float32, "torch.DoubleTensor": dtypes.float64, "torch.CharTensor": dtypes.int8,
    "torch.ShortTensor": dtypes.int16, "torch.IntTensor": dtypes.int32, "torch.LongTensor": dtypes.int64,
    "torch.ByteTensor": dtypes.uint8, "torch.BoolTensor": dtypes.bool_,
}  # fmt: skip
_SUPPORTED = frozenset(dtypes.SUPPORTED)
_NAMES = {dtype: name for name, dtype in TYPE_NAMES.items()}


def cast(self: TensorBase, dtype: Any) -> TensorBase:
    """The tensor in another dtype; itself where it has it already."""
    target = dtype
    if not isinstance(dtype, np.dtype) or dtype not in _SUPPORTED:
        target = dtype_of(dtype)
        if target not in _SUPPORTED:
            raise dtypes.unsupported(target, "to(): ")
    own = self.dtype
    return self if own == target else apply(REGISTRY["to"], (self,), _attrs(target, own))


@cache
def _attrs(target: np.dtype, own: np.dtype) -> Attrs:
    return known_attrs(None, dtype=target, x_dtype=own)


def dtype_of(kind: Any) -> Any:
    """The dtype that an argument means: a dtype, a typed class such as `FloatTensor`, or PyTorch's name of one.

    Raises
    ------
    DTypeError : it is none.
    """
    own = getattr(kind, "tensor_dtype", None)
    if own is not None:
        return own
    if isinstance(kind, str) and kind.startswith("torch."):
        if kind.startswith("torch.cuda."):
            raise DeviceError(f"type {kind!r} is not available: there is no GPU and no device but the CPU")
        if kind not in TYPE_NAMES:
            raise DTypeError(f"invalid type: {kind!r}; types are {sorted(TYPE_NAMES)}")
        return TYPE_NAMES[kind]
    if isinstance(kind, type) and issubclass(kind, TensorBase):  # PyTorch's `Tensor` is the type of the default dtype
        return dtypes.default_float()
    return known_dtype(kind)


def target_of(op: str, given: tuple[Any, ...], dtype: Any, device: Any) -> Any:
    """The dtype that arguments of `to` ask for, None for the present one.

    Parameters
    ----------
    op : the function, for messages.
    given : positional arguments: a tensor, a dtype, or a device and perhaps a dtype; flags may follow.

    Raises
    ------
    ArgumentError, DTypeError, DeviceError : they ask for a dtype or a device that does not exist here.
    """
    rest = list(given)
    if rest and isinstance(rest[0], TensorBase):
        dtype = rest.pop(0).dtype
    elif rest and (rest[0] is None or is_device(rest[0]) or type(rest[0]) is int):
        device = rest.pop(0)
        if rest and not isinstance(rest[0], bool):
            dtype = rest.pop(0)
    elif rest and not isinstance(rest[0], bool):
        dtype = rest.pop(0)
    if len(rest) > 2 or not all(isinstance(flag, bool) for flag in rest):
        raise ArgumentError(f"{op}() received an invalid combination of arguments: {given!r}")
    on_cpu(device, op)
    return None if dtype is None else dtype_of(dtype)


def to(
    self: TensorBase,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    other: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> TensorBase:
    """The tensor in another dtype; itself where it has it already.

    Parameters
    ----------
    args : a dtype; or a device, and perhaps a dtype; or a tensor, whose dtype is meant.
    dtype, device, other : the same by name; the device is the CPU.
    non_blocking, memory_format : accepted; they change nothing.
    copy : make a copy in any case.

    Raises
    ------
    DTypeError : a dtype without ops.
    DeviceError : another device than the CPU.
    """
    if len(args) == 1 and device is None and dtype is None and other is None and not copy:
        if args[0] is CPU or (type(args[0]) is str and args[0] == "cpu"):
            return self
        if isinstance(args[0], np.dtype):
            return cast(self, args[0])
    target = target_of("to", args if other is None else (other, *args), dtype, device)
    moved = self if target is None else cast(self, target)
    return REGISTRY["clone"](self) if copy and moved is self else moved


def cpu(self: TensorBase, memory_format: Any = None) -> TensorBase:
    """The tensor itself, which is on the CPU."""
    return self


def refuse_device(name: str) -> Any:
    """A method that would put a tensor on a device that is not there."""

    def method(self: TensorBase, *args: Any, **options: Any) -> NoReturn:
        raise DeviceError(
            f"{name}(): there is no GPU and no device but the CPU; leave it out, or ask {name}.is_available() first"
        )

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Refused: there is no {name} device.\n\n    Raises\n    ------\n    DeviceError : always.\n"
    return method


def type_(self: TensorBase, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The name of the tensor's type, such as 'torch.FloatTensor'; or the tensor in another dtype.

    Parameters
    ----------
    dtype : a dtype, a typed class, or PyTorch's name of one.
    non_blocking : accepted; it changes nothing.
    """
    return _NAMES[self.dtype] if dtype is None else cast(self, dtype)


def _converting(dtype: Any) -> Any:
    def method(self: TensorBase, memory_format: Any = None) -> TensorBase:
        return cast(self, dtype)

    method.__doc__ = f"The tensor in {dtype.name}; itself where it has it already."
    return method


METHODS: dict[str, Any] = {
    "to": to,
    "cpu": cpu,
    "type": type_,
    "type_as": lambda self, other: cast(self, other.dtype),
    **{name: refuse_device(name) for name in ("cuda", "xpu", "ipu", "hpu", "mtia")},
    **{
        name: _converting(dtype)
        for name, dtype in {
            "float": dtypes.float32, "double": dtypes.float64, "char": dtypes.int8, "short": dtypes.int16,
            "int": dtypes.int32, "long": dtypes.int64, "byte": dtypes.uint8, "bool": dtypes.bool_,
        }.items()
    },
    "device": property(lambda self: CPU, doc="The CPU."),
    **{
        f"is_{kind}": property(lambda self: False, doc="False: tensors are dense, of real numbers, on the CPU.")
        for kind in ("cuda", "mps", "xpu", "xla", "ipu", "hpu", "mtia", "maia", "meta", "vulkan", "mkldnn",
                     "quantized", "sparse", "sparse_csr", "nested")
    },
    "is_cpu": property(lambda self: True, doc="True."),
    "get_device": lambda self: -1,
    "pin_memory": lambda self, device=None: self,
    "is_pinned": lambda self, device=None: False,
    "is_shared": lambda self: False,
}  # fmt: skip
METHODS["get_device"].__doc__ = "-1: on the CPU."
METHODS["pin_memory"].__doc__ = "The tensor itself: without a GPU there is nothing to pin for."
METHODS["is_pinned"].__doc__ = METHODS["is_shared"].__doc__ = "False."
