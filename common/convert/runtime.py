"""What converted code calls: Python's own control flow where no tensor decides, else that of `common.control`.

States are passed as values by name. A name without a value is `UNSET`. What a loop or a branch would give a value only
sometimes is `Lost` afterwards: used, it says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common import acts, mode
from common.convert.branches import if_, if_return
from common.convert.logic import and_, chain, if_expression, not_, or_
from common.convert.loops import for_, range_, while_
from common.convert.source import callee
from common.convert.states import UNSET, Lost, decides, values, where_now
from common.dtypes import bool_, float64, int64
from common.errors import TraceError
from common.frames import locate, user_frame
from common.tensor.base import TensorBase
from common.tree import flatten


def own(x: Any) -> Any:
    """A tensor that may be written in place."""
    return x.clone() if isinstance(x, TensorBase) else x


def result(x: Any) -> Any:
    """What a function returns.

    Raises
    ------
    TraceError : a value of it exists on some paths only.
    """
    for part in flatten(x)[0]:
        if isinstance(part, Lost):
            raise TraceError(f"{where_now()}: the function returns {part!r}")
    return x


def assert_(test: Any, message: Callable[[], Any]) -> None:
    """``assert test, message()``."""
    if decides(test):
        acts.assert_(test, str(message()))
    else:
        assert test, message()


def plain(x: Any, line: int, reason: str) -> Any:
    """What a statement that was not converted asks.

    Raises
    ------
    TraceError : it is a tensor.
    """
    if decides(x):
        file, at, function = locate(*user_frame(2))
        raise TraceError(
            f"{file}:{at} in {function}: this statement depends on a tensor and cannot be converted, because of line "
            f"{line}: {reason}"
        )
    return x


def item(x: Any) -> Any:
    """``x.item()``: of a tensor, the element as a 0-d tensor of 64 bits that has no history."""
    if not isinstance(x, TensorBase):
        return x.item()
    with mode.no_grad():
        wide = x if x.dtype == bool_ else x.to(float64 if x.dtype.kind == "f" else int64)
        return wide.detach().reshape(())


__all__ = [
    "UNSET",
    "and_",
    "assert_",
    "callee",
    "chain",
    "for_",
    "if_",
    "if_expression",
    "if_return",
    "item",
    "not_",
    "or_",
    "own",
    "plain",
    "range_",
    "result",
    "values",
    "while_",
]
