"""Draws to memory by one kernel: numbers of `rand` or `randn`, and an expression of each."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import float64, int64
from common.core.source_lines import user_frame
from common.evaluate import kernels
from common.evaluate.kinds import number
from common.kernels.arrays import philox
from common.ops.create.creation import known_sizes
from common.random.generator import DrawPlan, Generator, default_generator
from common.tensor.base import TensorBase, wrap
from common.tensor.view_families import is_recorded
from common.tensor.write_log import log_write

_NUMBERS = frozenset((int, float))


def drawn_over(self: TensorBase, name: str, factor: Any, added: Any, generator: Generator | None) -> bool:
    """Fill a tensor as ``draw * factor + added`` does, without another array, where nothing is recorded.

    Parameters
    ----------
    name : "uniform" or "normal".
    factor, added : numbers.

    Returns
    -------
    bool : whether that was done; if not, nothing was drawn.
    """
    dtype = self.dtype
    if dtype.kind != "f" or type(factor) not in _NUMBERS or type(added) not in _NUMBERS:
        return False
    return _written(self, name, generator, number(factor, dtype), number(added, dtype))


def integers_over(self: TensorBase, first: Any, last: Any, generator: Generator | None) -> bool:
    """Fill a tensor with the integers from [first, last) that `randint` draws; whether that was done."""
    if type(first) is not int or type(last) is not int or last - first > 2**53 or self.dtype.kind == "b":
        return False
    return _written(self, "integers", generator, number(last - first, float64), number(first, int64))


def drawn_integers(generator: Generator, first: int, last: int, shape: tuple[Any, ...], dtype: np.dtype) -> Any:
    """The integers from [first, last) that `randint` draws; at most 2^53 of them."""
    y = np.empty(known_sizes(shape), int64 if dtype.kind == "b" else dtype)
    numbers = number(last - first, float64), number(first, int64)
    generator.take(_plan("integers", y.dtype, y.size), y, *numbers, y.size)
    return wrap(y if y.dtype == dtype else y.astype(dtype))


def drawn_normal(mean: Any, std: Any, shape: tuple[Any, ...], dtype: np.dtype, generator: Generator | None) -> Any:
    """Numbers of `randn` times a number plus a number; None where something else than a tensor is to be made."""
    of = generator or default_generator
    if mode.tracing or mode.inference_seen or dtype.kind != "f" or type(of) is not Generator:
        return None
    if type(mean) not in _NUMBERS or type(std) not in _NUMBERS:
        return None
    y = np.empty(shape, dtype)
    of.take(_plan("normal", dtype, y.size), y, number(std, dtype), number(mean, dtype), y.size)
    return wrap(y)


def ones_over(self: TensorBase, p: Any, generator: Generator | None) -> bool:
    """Fill a tensor with ones of probability `p`, and zeros; whether that was done."""
    if type(p) not in _NUMBERS or self.dtype.kind == "b":
        return False
    return _written(self, "ones", generator, number(p, float64))


def _written(self: TensorBase, name: str, generator: Generator | None, *numbers: np.ndarray) -> bool:
    of, x = generator or default_generator, self.payload
    if mode.tracing or mode.inference_seen or type(of) is not Generator or type(x) is not np.ndarray:
        return False
    if not x.flags.carray or (mode.is_grad_enabled() and is_recorded(self)):
        return False
    of.take(_plan(name, x.dtype, x.size), x, *numbers, x.size)
    log_write(x, *user_frame(3))
    return True


@lru_cache(maxsize=256)
def _plan(name: str, dtype: np.dtype, count: int) -> DrawPlan:
    scaled = f"{name}_{dtype}", "z * a + b", (dtype, dtype)  # -0 + 0 is +0, as in the functions
    draw, element, numbers = {
        "integers": ("uniform_float64", f"to_{dtype}(to_int64(z * a) + b)", (float64, int64)),
        "ones": ("uniform_float64", f"to_{dtype}(1 if z < a else 0)", (float64,)),
    }.get(name, scaled)
    return DrawPlan(kernels.compiled(philox.written_source(draw, element, dtype, numbers), "written"), count)
