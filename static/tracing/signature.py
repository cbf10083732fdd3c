"""Signatures of calls: they decide which trace and which plan may serve, and how two calls differ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from common.core.dtypes import SUPPORTED
from common.core.errors import DTypeError

PLAIN = frozenset([np.ndarray, float, int])
"""Types of leaves that the native call checks itself."""

Signature = tuple[Any, ...]
"""The arguments' structure, the positions of the differentiated ones (None if none can be), `kind` of each."""


def kind(x: Any) -> Any:
    """The part of a leaf that decides the trace: an array's dtype and sizes of 1, a number's type, else the value."""
    if isinstance(x, np.ndarray):
        return (x.dtype, tuple(n == 1 for n in x.shape))
    return form(x)


def form(x: Any) -> Any:
    """The part of a leaf that decides the plan: an array's dtype and shape, a number's type, else the value."""
    if isinstance(x, np.ndarray):
        return (x.shape, x.dtype)
    return type(x) if type(x) in (int, float) else (type(x), x)


def native_array(x: np.ndarray, position: int) -> np.ndarray:
    """The array in native byte order.

    Raises
    ------
    DTypeError : no op takes the dtype.
    """
    if x.dtype in SUPPORTED:
        return x
    native = x.dtype.newbyteorder("=")
    if native in SUPPORTED:
        return x.astype(native)
    raise DTypeError(
        f"argument {position} has dtype {x.dtype}; supported are {[d.name for d in SUPPORTED]}: convert it first"
    )


def difference(now: Signature, known: Iterable[Signature]) -> str:
    """How a signature differs from the nearest of the known ones, in words."""
    told = [found for before in known if (found := _difference(now, before))[0]]
    return min(told, default=(0, "nothing"))[1]


def _difference(now: Signature, before: Signature) -> tuple[int, str]:
    """In how many leaves two signatures differ, and how."""
    if _differ(now[0], before[0]):
        return max(len(now), len(before)), f"the arguments are nested as {now[0]}, before as {before[0]}"
    pairs = enumerate(zip(now[2:], before[2:], strict=True))
    told = [] if now[1] == before[1] else [f"{_asked(now[1])} now, before {_asked(before[1])}"]
    told += [f"argument {i} is {_text(a)}, before {_text(b)}" for i, (a, b) in pairs if _differ(a, b)]
    return len(told), "; ".join(told)


def _differ(a: Any, b: Any) -> bool:
    """Whether two hashable parts of signatures differ; what a user's ``==`` cannot say counts as different."""
    if hash(a) != hash(b):
        return True
    try:
        return bool(a != b)
    except Exception:
        return True


def _asked(history: tuple[int, ...] | None) -> str:
    return f"gradients are recorded, for arguments {list(history)}," if history is not None else "none are recorded"


def _text(leaf: Any) -> str:
    if isinstance(leaf, type):
        return f"a number of type {leaf.__name__}"
    first, second = leaf
    if isinstance(first, np.dtype):
        return f"{first}[{', '.join('1' if one else '*' for one in second)}]"
    return repr(second)
