"""Activations as modules: functions of `common.ops.functional` with their arguments."""

from __future__ import annotations

from typing import Any

from common.core.docstrings import sections_of
from common.core.errors import ShapeError
from common.methods.in_place_functions import over
from common.nn import functions as F
from common.nn.module import Module
from common.random.relaxed import rrelu


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, input: Any) -> Any:
        """tanh(input), input (...)."""
        return input.tanh()


class ReLU(Module):
    """max(x, 0).

    Parameters
    ----------
    inplace : write the result over the input.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """relu(input), input (...)."""
        return input.relu_() if self.inplace else input.relu()

    def extra_repr(self) -> str:
        """The argument."""
        return "inplace=True" if self.inplace else ""


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
    inplace : write the result over the input.
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
        self.alpha = alpha

    def forward(self, input: Any) -> Any:
        """elu(input), input (...)."""
        return over("elu", F.elu, input, self.alpha) if self.inplace else F.elu(input, self.alpha)

    def extra_repr(self) -> str:
        """The argument."""
        return f"alpha={self.alpha}{', inplace=True' if self.inplace else ''}"


class CELU(ELU):
    """x where x > 0, else alpha (e^(x / alpha) - 1).

    Parameters
    ----------
    alpha : number, not 0.
    inplace : write the result over the input.
    """

    def forward(self, input: Any) -> Any:
        """celu(input), input (...)."""
        return over("celu", F.celu, input, self.alpha) if self.inplace else F.celu(input, self.alpha)


class LeakyReLU(Module):
    """x where x > 0, else x negative_slope.

    Parameters
    ----------
    negative_slope : number.
    inplace : write the result over the input.
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Any:
        """leaky_relu(input), input (...)."""
        return (
            over("leaky_relu", F.leaky_relu, input, self.negative_slope)
            if self.inplace
            else F.leaky_relu(input, self.negative_slope)
        )

    def extra_repr(self) -> str:
        """The argument."""
        return f"negative_slope={self.negative_slope}{', inplace=True' if self.inplace else ''}"


class Hardtanh(Module):
    """x limited to [min_val, max_val].

    Parameters
    ----------
    min_val, max_val : numbers.
    inplace : write the result over the input.
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Any) -> Any:
        """hardtanh(input), input (...)."""
        return (
            over("hardtanh", F.hardtanh, input, self.min_val, self.max_val)
            if self.inplace
            else F.hardtanh(input, self.min_val, self.max_val)
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return f"min_val={self.min_val}, max_val={self.max_val}{', inplace=True' if self.inplace else ''}"


class ReLU6(Hardtanh):
    """x limited to [0, 6].

    Parameters
    ----------
    inplace : write the result over the input.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """The argument."""
        return "inplace=True" if self.inplace else ""


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


class _OverInput(Module):
    """An activation without other arguments, which may be written over its input.

    Parameters
    ----------
    inplace : write the result over the input.
    """

    #: Name of the function.
    function: str

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        """Apply the function to input (...)."""
        function = getattr(F, self.function)
        return over(self.function, function, input) if self.inplace else function(input)

    def extra_repr(self) -> str:
        """The argument."""
        return "inplace=True" if self.inplace else ""


@sections_of(_OverInput)
class SiLU(_OverInput):
    """x sigmoid(x)."""

    function = "silu"


@sections_of(_OverInput)
class Mish(_OverInput):
    """x tanh(log(1 + e^x))."""

    function = "mish"


@sections_of(_OverInput)
class SELU(_OverInput):
    """Scaled elu, which keeps mean 0 and variance 1."""

    function = "selu"


class Softmax(Module):
    """e^x divided by its sum along a dimension.

    Parameters
    ----------
    dim : the dimension; without one it is 0 for 0, 1 and 3 dimensions, else 1, with a warning, as in PyTorch.
    """

    def __init__(self, dim: int | None = None) -> None:
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
    dim : the dimension; without one it is 0 for 0, 1 and 3 dimensions, else 1, with a warning, as in PyTorch.
    """

    def forward(self, input: Any) -> Any:
        """log_softmax(input), input (...)."""
        return F.log_softmax(input, self.dim)


class RReLU(Module):
    """x where x > 0, else x times a slope from [lower, upper), random in training.

    Parameters
    ----------
    lower, upper : bounds of the slope.
    inplace : whether the input itself is changed.
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Any) -> Any:
        """rrelu(input), input (...)."""
        given = self.lower, self.upper, self.training
        return over("rrelu", rrelu, input, *given) if self.inplace else rrelu(input, *given)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"


class Softmax2d(Module):
    """Softmax over the channels of each place."""

    def forward(self, input: Any) -> Any:
        """Map input (batch, channels, height, width), or without batch.

        Raises
        ------
        ShapeError : another number of dimensions.
        """
        if input.ndim not in (3, 4):
            raise ShapeError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)
