"""Borders around images as modules."""

from __future__ import annotations

from typing import Any

from common.core.docstrings import sections_of
from common.core.errors import ShapeError
from common.nn import functions as F
from common.nn.module import Module
from common.ops.image.geometry import per_dimension


class _Pad(Module):
    """Elements added before and after the last dimensions, or taken away where a number is negative.

    Parameters
    ----------
    padding : how many, an int for everywhere; or a number before and one after, for the last dimension first.
    """

    rank = 0
    mode = "constant"
    value: Any = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = per_dimension(padding, 2 * self.rank, type(self).__name__, "padding")

    def forward(self, input: Any) -> Any:
        """Pad input (batch, channels, ...), or (channels, ...).

        Raises
        ------
        ShapeError : more taken away than there is, or more to be reflected or wrapped around than there is; other
            dimensions than the image's with channels, in batches or not, to be wrapped around.
        """
        if self.mode == "circular" and input.ndim not in (self.rank + 1, self.rank + 2):
            raise ShapeError(f"expected {self.rank + 1}D or {self.rank + 2}D input (got {input.ndim}D input)")
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """The argument."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """A number added before and after the last dimensions.

    Parameters
    ----------
    padding : how many, an int for everywhere; or a number before and one after, for the last dimension first.
    value : the number.
    """

    def __init__(self, padding: Any, value: Any) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """The arguments."""
        return f"padding={self.padding}, value={self.value}"


@sections_of(_ConstantPad)
class ConstantPad1d(_ConstantPad):
    """A number around images of 1 dimension, see `pad`."""

    rank = 1


@sections_of(_ConstantPad)
class ConstantPad2d(_ConstantPad):
    """A number around images of 2 dimensions, see `pad`."""

    rank = 2


@sections_of(_ConstantPad)
class ConstantPad3d(_ConstantPad):
    """A number around images of 3 dimensions, see `pad`."""

    rank = 3


class _ZeroPad(_Pad):
    """Zeros added before and after the last dimensions; `value` is theirs, as in PyTorch."""

    value = 0.0


@sections_of(_Pad)
class ZeroPad1d(_ZeroPad):
    """Zeros around images of 1 dimension, see `pad`."""

    rank = 1


@sections_of(_Pad)
class ZeroPad2d(_ZeroPad):
    """Zeros around images of 2 dimensions, see `pad`."""

    rank = 2


@sections_of(_Pad)
class ZeroPad3d(_ZeroPad):
    """Zeros around images of 3 dimensions, see `pad`."""

    rank = 3


@sections_of(_Pad)
class ReflectionPad1d(_Pad):
    """Reflections around images of 1 dimension, see `pad`."""

    rank = 1
    mode = "reflect"


@sections_of(_Pad)
class ReflectionPad2d(_Pad):
    """Reflections around images of 2 dimensions, see `pad`."""

    rank = 2
    mode = "reflect"


@sections_of(_Pad)
class ReflectionPad3d(_Pad):
    """Reflections around images of 3 dimensions, see `pad`."""

    rank = 3
    mode = "reflect"


@sections_of(_Pad)
class ReplicationPad1d(_Pad):
    """The edge around images of 1 dimension, see `pad`."""

    rank = 1
    mode = "replicate"


@sections_of(_Pad)
class ReplicationPad2d(_Pad):
    """The edge around images of 2 dimensions, see `pad`."""

    rank = 2
    mode = "replicate"


@sections_of(_Pad)
class ReplicationPad3d(_Pad):
    """The edge around images of 3 dimensions, see `pad`."""

    rank = 3
    mode = "replicate"


@sections_of(_Pad)
class CircularPad1d(_Pad):
    """The other side around images of 1 dimension, see `pad`."""

    rank = 1
    mode = "circular"


@sections_of(_Pad)
class CircularPad2d(_Pad):
    """The other side around images of 2 dimensions, see `pad`."""

    rank = 2
    mode = "circular"


@sections_of(_Pad)
class CircularPad3d(_Pad):
    """The other side around images of 3 dimensions, see `pad`."""

    rank = 3
    mode = "circular"
