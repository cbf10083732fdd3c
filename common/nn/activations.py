"""Activations as modules: functions of `common.ops.functional` with their arguments."""

from __future__ import annotations

from typing import Any

from common.nn.module import Module
from common.ops import functional as F


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        """tanh(input), input (...)."""
        return input.tanh()


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, input: Any) -> Any:
        """relu(input), input (...)."""
        return input.relu()


class Sigmoid(Module):
    """Logistic function."""

    def forward(self, input: Any) -> Any:
        """1 / (1 + e^-input), input (...)."""
        return input.sigmoid()


class GELU(Module):
    """Gaussian error linear unit.

    Parameters
    ----------
    approximate : "none" (erf) or "tanh".
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        """gelu(input), input (...)."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """The argument."""
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + e^(beta x)) / beta; x where beta x > threshold.

    Parameters
    ----------
    beta, threshold : numbers.
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Any:
        """softplus(input), input (...)."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"beta={self.beta}, threshold={self.threshold}"


class ELU(Module):
    """x where x > 0, else alpha (e^x - 1).

    Parameters
    ----------
    alpha : number.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, input: Any) -> Any:
        """elu(input), input (...)."""
        return F.elu(input, self.alpha)

    def extra_repr(self) -> str:
        """The argument."""
        return f"alpha={self.alpha}"


class CELU(ELU):
    """x where x > 0, else alpha (e^(x / alpha) - 1).

    Parameters
    ----------
    alpha : number, not 0.
    """

    def forward(self, input: Any) -> Any:
        """celu(input), input (...)."""
        return F.celu(input, self.alpha)


class LeakyReLU(Module):
    """x where x > 0, else x negative_slope.

    Parameters
    ----------
    negative_slope : number.
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Any:
        """leaky_relu(input), input (...)."""
        return F.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        """The argument."""
        return f"negative_slope={self.negative_slope}"


class Hardtanh(Module):
    """x limited to [min_val, max_val].

    Parameters
    ----------
    min_val, max_val : numbers.
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Any) -> Any:
        """hardtanh(input), input (...)."""
        return F.hardtanh(input, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"min_val={self.min_val}, max_val={self.max_val}"


class ReLU6(Hardtanh):
    """x limited to [0, 6]."""

    def __init__(self) -> None:
        super().__init__(0.0, 6.0)

    def extra_repr(self) -> str:
        """Nothing: the bounds are fixed."""
        return ""


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def forward(self, input: Any) -> Any:
        """logsigmoid(input), input (...)."""
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Any) -> Any:
        """softsign(input), input (...)."""
        return F.softsign(input)


class SiLU(Module):
    """x sigmoid(x)."""

    def forward(self, input: Any) -> Any:
        """silu(input), input (...)."""
        return F.silu(input)


class Mish(Module):
    """x tanh(log(1 + e^x))."""

    def forward(self, input: Any) -> Any:
        """mish(input), input (...)."""
        return F.mish(input)


class SELU(Module):
    """Scaled elu, which keeps mean 0 and variance 1."""

    def forward(self, input: Any) -> Any:
        """selu(input), input (...)."""
        return F.selu(input)


class Softmax(Module):
    """e^x divided by its sum along a dimension.

    Parameters
    ----------
    dim : the dimension.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        """softmax(input), input (...)."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """The argument."""
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of `Softmax`.

    Parameters
    ----------
    dim : the dimension.
    """

    def forward(self, input: Any) -> Any:
        """log_softmax(input), input (...)."""
        return F.log_softmax(input, self.dim)
