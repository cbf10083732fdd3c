"""Initial values, drawn from the default generator; outside a trace, by no engine in particular."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.core.allocation import refuse_beyond_memory
from common.core.dtypes import default_float
from common.core.errors import TraceError
from common.core.mode import outside_graphs
from common.random.generator import Generator, default_generator
from common.tensor.arrays import dtype_or
from common.tensor.leaf import Parameter


def uniform(shape: tuple[int, ...], bound: float, dtype: Any = None, generator: Generator | None = None) -> Parameter:
    """A parameter drawn uniformly from [-bound, bound).

    Parameters
    ----------
    shape : sizes
    bound : half the width of the interval.
    dtype : float32 (default) or float64.

    Raises
    ------
    TraceError : inside a traced function.
    """
    wanted = dtype_or(dtype, default_float())
    u = _drawn("rand", shape, wanted, generator)
    # one rounding per operation, and the same for both engines, because this runs before either
    np.multiply(u, wanted.type(2 * bound), out=u)
    np.subtract(u, wanted.type(bound), out=u)
    return Parameter.over(u, requires_grad=True)


def normal(shape: tuple[int, ...], dtype: Any = None, generator: Generator | None = None) -> Parameter:
    """A parameter drawn from N(0, 1), float32 by default; not inside a traced function."""
    return Parameter.over(_drawn("randn", shape, dtype_or(dtype, default_float()), generator), requires_grad=True)


def _drawn(kind: str, shape: tuple[int, ...], dtype: np.dtype, generator: Generator | None) -> np.ndarray:
    with outside_graphs():
        drawn = (generator or default_generator).draw(kind, shape, dtype)
    if not isinstance(drawn, np.ndarray):
        raise TraceError(
            "a module with parameters is made inside a traced function, which would draw others in every call: make it "
            "before the function, and call it inside"
        )
    return drawn


def constant(shape: Any, value: float, dtype: Any = None) -> Parameter:
    """A parameter with a number everywhere, float32 by default."""
    return Parameter.over(filled(shape, value, dtype), requires_grad=True)


def filled(shape: Any, value: float, dtype: Any = None) -> np.ndarray:
    """A fresh array with a number everywhere, float32 by default.

    Raises
    ------
    AllocationError : it does not fit into memory.
    DTypeError : a dtype without ops.
    """
    array = np.zeros(shape, dtype_or(dtype, default_float()))
    refuse_beyond_memory("Parameter", array.nbytes)
    if value:
        array.fill(value)
    return array


def linear_bound(fan_in: int) -> float:
    """PyTorch's bound for Linear: kaiming_uniform with a = sqrt(5), that is 1 / sqrt(fan_in).

    Source: He et al., Delving deep into rectifiers, 2015, with gain sqrt(2 / (1 + a^2)).
    """
    return 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
