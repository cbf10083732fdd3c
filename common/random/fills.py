"""Draws to the memory of a tensor: numbers of `rand` or `randn`, times a number, plus a number."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from common.core import mode
from common.core.source_lines import user_frame
from common.evaluate import kernels
from common.evaluate.kinds import number
from common.kernels.arrays import philox
from common.random.generator import DrawPlan, Generator, default_generator
from common.tensor.base import TensorBase
from common.tensor.view_families import is_recorded
from common.tensor.write_log import log_write


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
    of, x = generator or default_generator, self.payload
    if mode.tracing or mode.inference_seen or type(of) is not Generator or type(x) is not np.ndarray:
        return False
    if x.dtype.kind != "f" or not x.flags.carray or (mode.is_grad_enabled() and is_recorded(self)):
        return False
    if (type(factor) is not float and type(factor) is not int) or (type(added) is not float and type(added) is not int):
        return False
    of.take(_plan(name, x.size, x.dtype), x)
    if factor != 1:
        _each("mul", x, factor)
    if factor != 1 or added != 0 or name == "normal":  # of which one may be -0, and -0 + 0 is +0
        _each("add", x, added)
    log_write(x, *user_frame(2))
    return True


def _each(op: str, x: np.ndarray, value: Any) -> None:
    """Apply an op with a number to every element."""
    kernels.general(op, (x.dtype, x.dtype), x.dtype, "fs")(x, number(value, x.dtype), x, x.size, x.size)


@lru_cache(maxsize=256)
def _plan(name: str, count: int, dtype: np.dtype) -> DrawPlan:
    source = philox.uniform_source(dtype) if name == "uniform" else philox.normal_source(dtype)
    fill = kernels.compiled(source, name)
    return DrawPlan(lambda key, offset, x: fill(key, offset, x, count), count)
