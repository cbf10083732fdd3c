"""Initial values, drawn from the default generator; outside a trace, by no engine in particular."""

from __future__ import annotations

import math

import numpy as np

from common.leaf import Parameter
from common.random import Generator, default_generator


def uniform(shape: tuple[int, ...], bound: float, generator: Generator | None = None) -> Parameter:
    """A float32 parameter drawn uniformly from [-bound, bound).

    Parameters
    ----------
    shape : sizes
    bound : half the width of the interval.
    """
    u = (generator or default_generator).draw("rand", shape, np.dtype(np.float32))
    # exact but for one rounding per operation, which both engines share because this runs before either
    return Parameter(u * np.float32(2 * bound) - np.float32(bound))


def normal(shape: tuple[int, ...], generator: Generator | None = None) -> Parameter:
    """A float32 parameter drawn from N(0, 1)."""
    return Parameter((generator or default_generator).draw("randn", shape, np.dtype(np.float32)))


def linear_bound(fan_in: int) -> float:
    """PyTorch's bound for Linear: kaiming_uniform with a = sqrt(5), that is 1 / sqrt(fan_in).

    Source: He et al., Delving deep into rectifiers, 2015, with gain sqrt(2 / (1 + a^2)).
    """
    return 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
