"""`print` and `assert_`: effects of a program. A compiled program has them too, each time and in order."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, CheckError
from common.core.int_arguments import shown
from common.core.shapes import unrepeated
from common.core.source_lines import locate, user_frame
from common.ops.functional import all as all_of
from common.tensor import printing
from common.tensor.base import TensorBase


def print(*values: Any, sep: str = " ", end: str = "\n") -> None:
    """Print tensors and other things, as Python's `print` does; in a compiled program whenever it gets there.

    Printing is never left out, and keeps its order, also in loops and branches. Texts are the same in both engines.

    Parameters
    ----------
    values : tensors and arrays are printed with their elements of the moment; the text of anything else is made once,
        when the program is traced.
    sep, end : between values, and after them.

    Examples
    --------
    >>> import numpy as np, static
    >>> @static.function
    ... def f(x):
    ...     static.print("sum:", x.sum())
    ...     return x * 2
    >>> y = f(np.ones(3, np.float32))
    sum: tensor(3.)
    """
    for name, text in (("sep", sep), ("end", end)):
        if not isinstance(text, str):
            raise ArgumentError(f"print(): argument '{name}' must be str, not {type(text).__name__} ({shown(text)})")
    tensors = [x for x in values if isinstance(x, (TensorBase, np.ndarray))]
    texts = tuple(None if isinstance(x, (TensorBase, np.ndarray)) else str(x) for x in values)
    trace = mode.current_trace()
    act = show if trace is None else trace.act
    act("print", tensors, {"texts": texts, "sep": sep, "end": end})


def assert_(condition: Any, message: str = "") -> None:
    """Raise an error unless all elements of a condition hold; a compiled program ends there, and writes no state.

    Parameters
    ----------
    condition : tensor, array or truth value.
    message : part of the error.

    Raises
    ------
    CheckError : an element does not hold; it is an AssertionError and names the line.

    Examples
    --------
    >>> import numpy as np, static
    >>> @static.function
    ... def root(x):
    ...     static.assert_(x >= 0, "negative")
    ...     return static.sqrt(x)
    >>> root(np.array([4.0, 9.0]))
    tensor([2., 3.], dtype=float64)
    """
    if not isinstance(message, str):
        raise ArgumentError(f"assert_(): the message is a str, not {type(message).__name__}")
    if not isinstance(condition, (TensorBase, np.ndarray)):
        condition = np.asarray(bool(condition))
    with mode.no_grad():
        whole = all_of(condition) if isinstance(condition, TensorBase) else np.asarray(unrepeated(condition).all())
    trace = mode.current_trace()
    act = show if trace is None else trace.act
    file, line, function = locate(*user_frame(2))
    act("assert", [whole], {"message": f"{message or 'assertion failed'}\n  in {file}:{line} in {function}"})


def show(kind: str, operands: Sequence[Any], attrs: Any) -> None:
    """Do it now.

    Raises
    ------
    CheckError : see `assert_`.
    """
    arrays = [x.payload if isinstance(x, TensorBase) else np.asarray(x) for x in operands]
    if kind == "assert":
        if not arrays[0]:
            raise CheckError(attrs["message"])
        return
    made = iter(arrays)
    parts = [printing.text(next(made), []) if text is None else text for text in attrs["texts"]]
    builtins.print(*parts, sep=attrs["sep"], end=attrs["end"])
