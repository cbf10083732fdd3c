"""Initial values, drawn from the default generator; outside a trace, by no engine in particular."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.core.dtypes import default_float
from common.core.mode import outside_graphs
from common.random.generator import Generator, default_generator
from common.tensor.leaf import Parameter


def uniform(shape: tuple[int, ...], bound: float, dtype: Any = None, generator: Generator | None = None) -> Parameter:
    """A parameter drawn uniformly from [-bound, bound).

    Parameters
    ----------
    shape : sizes
    bound : half the width of the interval.
    dtype : float32 (default) or float64.
    """
    wanted = np.dtype(default_float() if dtype is None else dtype)
    with outside_graphs():
        u = (generator or default_generator).draw("rand", shape, wanted)
    # one rounding per operation, and the same for both engines, because this runs before either
    return Parameter(u * wanted.type(2 * bound) - wanted.type(bound))


def normal(shape: tuple[int, ...], dtype: Any = None, generator: Generator | None = None) -> Parameter:
    """A parameter drawn from N(0, 1), float32 by default."""
    wanted = np.dtype(default_float() if dtype is None else dtype)
    with outside_graphs():
        return Parameter((generator or default_generator).draw("randn", shape, wanted))


def linear_bound(fan_in: int) -> float:
    """PyTorch's bound for Linear: kaiming_uniform with a = sqrt(5), that is 1 / sqrt(fan_in).

    Source: He et al., Delving deep into rectifiers, 2015, with gain sqrt(2 / (1 + a^2)).
    """
    return 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
