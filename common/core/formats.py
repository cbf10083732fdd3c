"""Ways to lay out memory, under PyTorch's names: all tensors are strided, and new ones lie row by row."""

from __future__ import annotations

from typing import Any


class layout(str):
    """A kind of tensor by what it stores: `strided` is the only one."""

    __slots__ = ()


class memory_format(str):
    """An order of a tensor's elements in memory: they are row by row, whatever is asked for."""

    __slots__ = ()


STRIDED = layout("torch.strided")

#: By name: `layout=` accepts `strided`, and `memory_format=` all others, which change nothing.
FORMATS: dict[str, Any] = {
    "layout": layout, "strided": STRIDED, "memory_format": memory_format,
    **{
        name: memory_format(f"torch.{name}")
        for name in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
    },
}  # fmt: skip
