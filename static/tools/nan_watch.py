"""`nan_watch`: the first op of a compiled program that makes nan or infinity of finite numbers."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from static.graph import Node
from static.running.interpreter import interpret, with_room
from static.tools.replay import phase, trace_call


@dataclass(frozen=True, slots=True)
class NonFinite:
    """The first op with finite operands and a result that is not.

    Attributes
    ----------
    op, phase : its name, and whether it is part of the "forward" or of a "backward" pass.
    source : the user's file, line and function.
    kind, index : "nan" or "inf", and the first element that is.
    operands : the operands' elements there, or their largest magnitudes where shapes differ.
    """

    op: str
    phase: str
    source: tuple[str, int, str]
    kind: str
    index: tuple[int, ...]
    operands: tuple[str, ...]

    def __str__(self) -> str:
        file, line, function = self.source
        code = linecache.getline(file, line).strip()
        given = ", ".join(self.operands)
        return (
            f"{self.op} ({self.phase}) at {file}:{line} in {function}: `{code}` makes {self.kind} at element "
            f"{self.index} of finite operands ({given})"
        )


class _Found(Exception):
    def __init__(self, what: NonFinite) -> None:
        self.what = what


def nan_watch(f: Callable[..., Any], *args: Any, **kwargs: Any) -> NonFinite | None:
    """Run a call op by op, on the bits on which it would run compiled, and find what makes the first nan or infinity.

    Nothing outside is changed: state that the program would write is copied. Gradients that the program computes inside
    (`backward`, `grad`) are watched as well.

    Parameters
    ----------
    f : a `function`, a Python function that could be one, a session's `run`, or what its `make_callable` returns.
    args, kwargs : of the call.

    Returns
    -------
    NonFinite or None
        None if every op with finite operands has finite results. Infinity and nan among the arguments are no findings.

    Raises
    ------
    TraceError : `f` cannot be traced.

    Examples
    --------
    >>> import numpy as np, static
    >>> found = static.nan_watch(lambda x: static.log(x - 1).sum(), np.array([2.0, 0.5]))
    >>> found.op, found.kind, found.index
    ('log', 'nan', (1,))
    """

    def watch(node: Node, operands: Sequence[Any], results: tuple[Any, ...]) -> None:
        for result in results:
            if result.dtype.kind == "f" and not np.isfinite(result).all() and all(map(_is_finite, operands)):
                raise _Found(_describe(node, operands, result))

    call = trace_call(f, args, kwargs)
    try:
        with_room(lambda env: interpret(call.graph, call.arrays, env, watch), call.env)
    except _Found as found:
        return found.what
    return None


def _is_finite(x: Any) -> bool:
    return np.asarray(x).dtype.kind != "f" or bool(np.isfinite(x).all())


def _describe(node: Node, operands: Sequence[Any], result: np.ndarray) -> NonFinite:
    at = tuple(map(int, np.argwhere(~np.isfinite(result))[0]))
    kind = "nan" if np.isnan(result[at]) else "inf"
    given = []
    for x in map(np.asarray, operands):
        if x.shape == result.shape:
            given.append(f"{x[at]}")
        elif x.ndim == 0:
            given.append(f"{x}")
        else:
            given.append(f"{x.dtype}{list(x.shape)} of at most {np.abs(x).max() if x.size else 0}")
    return NonFinite(node.name, phase(node), node.source, kind, at, tuple(given))
