"""Activations as modules: functions of `common.functional` with their arguments."""

from __future__ import annotations

from typing import Any

from common import functional as F
from common.nn.module import Module


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, x: Any) -> Any:
        """tanh(x), x (...)."""
        return F.tanh(x)


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Any) -> Any:
        """relu(x), x (...)."""
        return F.relu(x)


class Sigmoid(Module):
    """Logistic function."""

    def forward(self, x: Any) -> Any:
        """1 / (1 + e^-x), x (...)."""
        return F.sigmoid(x)


class GELU(Module):
    """Gaussian error linear unit.

    Parameters
    ----------
    approximate : "none" (erf) or "tanh".
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Any) -> Any:
        """gelu(x), x (...)."""
        return F.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        """The argument."""
        return f"approximate={self.approximate!r}"


class Softmax(Module):
    """e^x divided by its sum along a dimension.

    Parameters
    ----------
    dim : the dimension.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Any) -> Any:
        """softmax(x), x (...)."""
        return F.softmax(x, self.dim)

    def extra_repr(self) -> str:
        """The argument."""
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of `Softmax`.

    Parameters
    ----------
    dim : the dimension.
    """

    def forward(self, x: Any) -> Any:
        """log_softmax(x), x (...)."""
        return F.log_softmax(x, self.dim)
