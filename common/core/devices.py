"""Devices: programs name them, and all tensors are on the CPU.

A `device` can name any kind of device, as in PyTorch, where a program chooses one by what is available. Putting a
tensor on another than the CPU is refused.

Examples
--------
>>> d = device("cpu")
>>> d, d.type, d == device("cpu", 0)
(device(type='cpu'), 'cpu', False)
>>> on_cpu(device("cuda:0"), "to")
Traceback (most recent call last):
...
common.core.errors.DeviceError: to(): device 'cuda:0' is not available: there is no GPU and no device but the CPU; ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from common.core.errors import ArgumentError, DeviceError

F = TypeVar("F", bound=Callable[..., Any])
#: Kinds of devices that PyTorch's programs name.
KINDS = ("cpu", "cuda", "mps", "xpu", "meta", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "ort", "xla",
         "lazy", "vulkan", "mtia", "hpu", "ipu", "ve", "privateuseone", "maia")  # fmt: skip


class device:
    """A kind of device and a number.

    Parameters
    ----------
    type : such as "cpu" or "cuda:0"; an int is the number of a GPU.
    index : the number, where `type` has none.

    Attributes
    ----------
    type : the kind, such as "cpu".
    index : the number, or None.

    Raises
    ------
    ArgumentError : a kind that PyTorch does not know either.

    Notes
    -----
    As a context manager and as a decorator it changes nothing for the CPU and is refused for any other.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index if index is None else index
        elif isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        if not isinstance(type, str):
            kind = type.__class__.__name__
            raise ArgumentError(f"device(): argument 'type' must be str or int, not {kind}")
        kind, colon, number = type.partition(":")
        if kind not in KINDS or (colon and not number.isdecimal()):
            raise ArgumentError(f"Expected one of {', '.join(KINDS)} device type at start of device string: {type}")
        if colon and index is not None:
            raise ArgumentError(f"device(): type {type!r} has a number already; leave the index out")
        if index is not None and (not isinstance(index, int) or index < 0):
            raise ArgumentError(f"device(): argument 'index' must be an int that is not negative, got {index!r}")
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", int(number) if colon else index)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ArgumentError(f"a device cannot be changed: make another one, for its {name!r}")

    def __repr__(self) -> str:
        return f"device(type={self.type!r}{'' if self.index is None else f', index={self.index}'})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return device, (str(self),)

    def __enter__(self) -> device:
        on_cpu(self, "device")
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __call__(self, function: F) -> F:
        """Decorate a function: it is unchanged, since tensors are made on the CPU anyway."""
        on_cpu(self, "device")
        return function


CPU = device("cpu")


def is_device(x: Any) -> bool:
    """Whether an argument names a device: a `device`, or a text that begins with a kind of one."""
    return isinstance(x, device) or (isinstance(x, str) and x.partition(":")[0] in KINDS)


def on_cpu(where: Any, op: str) -> None:
    """Accept the CPU, or None, as the place of a tensor.

    Parameters
    ----------
    where : device, text or None.
    op : the function, for the message.

    Raises
    ------
    DeviceError : another device.
    ArgumentError : no device.
    """
    if where is None or where is CPU:
        return
    if not (isinstance(where, (device, str)) or (isinstance(where, int) and not isinstance(where, bool))):
        raise ArgumentError(f"{op}(): argument 'device' must be torch.device or str, not {type(where).__name__}")
    asked = device(where)
    if asked.type != "cpu":
        raise DeviceError(
            f"{op}(): device {str(asked)!r} is not available: there is no GPU and no device but the CPU; "
            "use device('cpu'), or ask cuda.is_available() first"
        )


def set_default_device(device: Any) -> None:
    """Say where tensors are made: on the CPU.

    Raises
    ------
    DeviceError : another device.
    """
    on_cpu(device, "set_default_device")


def get_default_device() -> device:
    """Where tensors are made: on the CPU."""
    return CPU


class _Format:
    """A name of PyTorch's for what all tensors are, or for what changes nothing."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(self._name)


class layout(_Format):
    """A kind of tensor by what it stores: all are `strided`; the others are there to be compared with."""

    __slots__ = ()


class memory_format(_Format):
    """An order of a tensor's elements in memory: they are row by row, whatever is asked for."""

    __slots__ = ()


STRIDED = layout("torch.strided")


def dense(kind: Any, op: str) -> None:
    """Accept `strided`, or None, as the layout of a tensor.

    Parameters
    ----------
    kind : layout or None.
    op : the function, for the message.

    Raises
    ------
    ArgumentError : another layout, or none.
    """
    if kind is None or kind is STRIDED:
        return
    if not isinstance(kind, layout):
        raise ArgumentError(f"{op}(): argument 'layout' must be torch.layout, not {type(kind).__name__}")
    raise ArgumentError(f"{op}(): layout {kind!r}: there are no sparse tensors; tensors are dense, leave layout= out")


#: By name: `layout=` accepts `strided`, and `memory_format=` all of its kind, which change nothing.
FORMATS: dict[str, Any] = {
    "layout": layout, "strided": STRIDED, "memory_format": memory_format,
    **{
        name: layout(f"torch.{name}")
        for name in ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn")
    },
    **{
        name: memory_format(f"torch.{name}")
        for name in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
    },
}  # fmt: skip
