"""Activations made of straight pieces, and gates, as modules."""

from __future__ import annotations

from typing import Any

from common.core.devices import on_cpu
from common.core.docstrings import sections_of
from common.core.int_arguments import integer
from common.methods.in_place_functions import over
from common.nn import functions as F
from common.nn.activations import _OverInput
from common.nn.init import constant
from common.nn.module import Module
from common.nn.reset import reset_parameters


@sections_of(_OverInput)
class Hardsigmoid(_OverInput):
    """A sigmoid of three straight pieces."""

    function = "hardsigmoid"


@sections_of(_OverInput)
class Hardswish(_OverInput):
    """x times its hard sigmoid."""

    function = "hardswish"


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Any) -> Any:
        """tanhshrink(input), input (...)."""
        return F.tanhshrink(input)


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        """The argument."""
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """0 where |x| <= lambd, else x.

    Parameters
    ----------
    lambd : number.
    """

    def forward(self, input: Any) -> Any:
        """hardshrink(input), input (...)."""
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by lambd, as far as 0.

    Parameters
    ----------
    lambd : number, not negative.
    """

    def forward(self, input: Any) -> Any:
        """softshrink(input), input (...)."""
        return F.softshrink(input, self.lambd)


class Threshold(Module):
    """x where it is above `threshold`, else `value`.

    Parameters
    ----------
    threshold, value : numbers.
    inplace : write the result over the input.
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
        self.threshold, self.value = threshold, value

    def forward(self, input: Any) -> Any:
        """threshold(input), input (...)."""
        return (
            over("threshold", F.threshold, input, self.threshold, self.value)
            if self.inplace
            else F.threshold(input, self.threshold, self.value)
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return f"threshold={self.threshold}, value={self.value}{', inplace=True' if self.inplace else ''}"


class PReLU(Module):
    """x where x > 0, else x times a learned slope.

    Parameters
    ----------
    num_parameters : 1, or the number of channels.
    init : the slope at first.
    device : the CPU.
    dtype : of the slope, float32 by default.

    Attributes
    ----------
    weight : (num_parameters,)
    """

    reset_parameters = reset_parameters

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        on_cpu(device, type(self).__name__)
        self.num_parameters, self.init = integer(num_parameters, "PReLU", "num_parameters"), init
        self.weight = constant(self.num_parameters, init, dtype)

    def forward(self, input: Any) -> Any:
        """prelu(input), input (batch, channels, ...)."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The argument."""
        return f"num_parameters={self.num_parameters}"


class _Over(Module):
    dim: int | None

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """The argument."""
        return f"dim={self.dim}"


class GLU(_Over):
    """The first half times the sigmoid of the second half.

    Parameters
    ----------
    dim : the dimension that is halved.
    """

    def forward(self, input: Any) -> Any:
        """glu(input), input (..., 2 n, ...)."""
        return F.glu(input, self.dim)


class Softmin(_Over):
    """The softmax of -x.

    Parameters
    ----------
    dim : the dimension; see `Softmax`.
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """softmin(input), input (...)."""
        return F.softmin(input, self.dim)
