"""Activations made of straight pieces, and gates, as modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from common import functional as F
from common.dtypes import DEFAULT_FLOAT
from common.nn.module import Module
from common.tensor.leaf import Parameter


class Hardsigmoid(Module):
    """A sigmoid of three straight pieces."""

    def forward(self, x: Any) -> Any:
        """hardsigmoid(x), x (...)."""
        return F.hardsigmoid(x)


class Hardswish(Module):
    """x times its hard sigmoid."""

    def forward(self, x: Any) -> Any:
        """hardswish(x), x (...)."""
        return F.hardswish(x)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, x: Any) -> Any:
        """tanhshrink(x), x (...)."""
        return F.tanhshrink(x)


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

    def forward(self, x: Any) -> Any:
        """hardshrink(x), x (...)."""
        return F.hardshrink(x, self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by lambd, as far as 0.

    Parameters
    ----------
    lambd : number, not negative.
    """

    def forward(self, x: Any) -> Any:
        """softshrink(x), x (...)."""
        return F.softshrink(x, self.lambd)


class Threshold(Module):
    """x where it is above `threshold`, else `value`.

    Parameters
    ----------
    threshold, value : numbers.
    """

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold, self.value = threshold, value

    def forward(self, x: Any) -> Any:
        """threshold(x), x (...)."""
        return F.threshold(x, self.threshold, self.value)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"threshold={self.threshold}, value={self.value}"


class PReLU(Module):
    """x where x > 0, else x times a learned slope.

    Parameters
    ----------
    num_parameters : 1, or the number of channels.
    init : the slope at first.
    dtype : of the slope, float32 by default.

    Attributes
    ----------
    weight : (num_parameters,)
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(np.full(num_parameters, init, dtype or DEFAULT_FLOAT))

    def forward(self, x: Any) -> Any:
        """prelu(x), x (batch, channels, ...)."""
        return F.prelu(x, self.weight)

    def extra_repr(self) -> str:
        """The argument."""
        return f"num_parameters={self.num_parameters}"


class _Over(Module):
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

    def forward(self, x: Any) -> Any:
        """glu(x), x (..., 2 n, ...)."""
        return F.glu(x, self.dim)


class Softmin(_Over):
    """The softmax of -x.

    Parameters
    ----------
    dim : the dimension.
    """

    def forward(self, x: Any) -> Any:
        """softmin(x), x (...)."""
        return F.softmin(x, self.dim)
