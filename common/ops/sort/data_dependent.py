"""Elements for functions whose results have sizes that depend on the data, and which no trace can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core import mode
from common.core.allocation import refuse_endless
from common.tensor.base import TensorBase


def elements(x: Any, function: str, instead: str) -> np.ndarray:
    """The array behind an operand.

    Parameters
    ----------
    function : name of the function that needs it.
    instead : what to do in a traced program, as the end of a sentence.

    Raises
    ------
    TraceError : a program is being traced, in which sizes are fixed before there are elements.
    """
    trace = mode.current_trace()
    if trace is not None:
        shared = getattr(trace.payload(x), "shared", None)
        if shared is None:
            trace.refuse_size(function, instead)
        x = shared
    array = x.payload if isinstance(x, TensorBase) else x
    refuse_endless(function, array.shape if isinstance(array, np.ndarray) else np.shape(array))
    return array


def known_elements(x: Any) -> np.ndarray | None:
    """The array behind an operand; None where it exists only when a traced program runs."""
    trace = mode.current_trace()
    data = x if not isinstance(x, TensorBase) else x.payload if trace is None else trace.payload(x)
    return data if isinstance(data, np.ndarray) else None
