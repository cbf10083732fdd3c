"""Draws to memory by one kernel: numbers of `rand` or `randn`, and an expression of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.dtypes import float64
from common.core.source_lines import user_frame
from common.evaluate.kinds import number
from common.random.generator import Generator, default_generator
from common.random.one_kernel import plan, range_numbers
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
    return _written(self, "integers", generator, *range_numbers(first, last))


def drawn_normal(mean: Any, std: Any, shape: tuple[Any, ...], dtype: np.dtype, generator: Generator | None) -> Any:
    """Numbers of `randn` times a number plus a number; None where something else than a tensor is to be made."""
    of = generator or default_generator
    if mode.tracing or mode.inference_seen or dtype.kind != "f" or type(of) is not Generator:
        return None
    if type(mean) not in _NUMBERS or type(std) not in _NUMBERS:
        return None
    y = np.empty(shape, dtype)
    of.take(plan("normal", dtype, y.size), y, number(std, dtype), number(mean, dtype), y.size)
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
    of.take(plan(name, x.dtype, x.size), x, *numbers, x.size)
    log_write(x, *user_frame(3))
    return True
