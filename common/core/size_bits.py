"""The operators of sizes' bits: what they give is a number, and a trace holds for sizes that are this one."""

from __future__ import annotations

from typing import Any


class Bits:
    """The operators ``& | ^ << >> ~`` of what `int` takes."""

    __slots__ = ()

    def __index__(self) -> int:
        raise NotImplementedError

    def __int__(self) -> int:
        return self.__index__()

    def __and__(self, other: Any) -> Any:
        return int(self) & other

    def __rand__(self, other: Any) -> Any:
        return other & int(self)

    def __or__(self, other: Any) -> Any:
        return int(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | int(self)

    def __xor__(self, other: Any) -> Any:
        return int(self) ^ other

    def __rxor__(self, other: Any) -> Any:
        return other ^ int(self)

    def __lshift__(self, other: Any) -> Any:
        return int(self) << other

    def __rlshift__(self, other: Any) -> Any:
        return other << int(self)

    def __rshift__(self, other: Any) -> Any:
        return int(self) >> other

    def __rrshift__(self, other: Any) -> Any:
        return other >> int(self)

    def __invert__(self) -> int:
        return ~int(self)
