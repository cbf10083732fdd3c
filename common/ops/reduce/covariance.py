"""Covariance and correlation of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.core.dtypes import default_float, float64
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import integer
from common.core.source_lines import warn_user
from common.ops.index.written_values import of_dtype
from common.ops.linalg.matmul import mm
from common.ops.math.arithmetic import sqrt
from common.ops.math.compare import clamp, maximum
from common.ops.reduce.reductions import sum as total
from common.ops.shape.diagonal import diagonal
from common.ops.shape.view import reshape, transpose, unsqueeze


def cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance matrix of variables, of which each row holds the observations of one.

    Parameters
    ----------
    x : (variables, observations), (observations,) or ().
    correction : subtracted from the number of observations.
    fweights : (observations,) of integers: how often each was observed.
    aweights : (observations,), floating point: how much each counts.

    Returns
    -------
    tensor : (variables, variables), or () of one variable.

    Raises
    ------
    ShapeError : more than two dimensions, or weights of another size.
    DTypeError : bools, or weights of another kind.
    ArgumentError : a weight is negative; in a trace nobody looks.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cov(tw.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    less = integer(correction, "cov", "correction")
    if x.ndim > 2:
        raise ShapeError(f"cov(): expected input to have two or fewer dimensions but got an input with {x.ndim}")
    if x.dtype.kind == "b":
        raise DTypeError("cov(): bool dtype is not supported for input")
    rows = reshape(x, (1, -1)) if x.ndim < 2 else x
    seen = rows.shape[1]
    rows = rows if rows.dtype.kind == "f" else of_dtype(rows, float64)
    frequent = _weights("fweights", fweights, seen, "iu")
    important = _weights("aweights", aweights, seen, "f")
    weights = [w for w in (frequent, important) if w is not None]
    if not weights:
        whole: Any = seen
        freedom: Any = seen - less
        if not isinstance(freedom, int) or freedom <= 0:
            freedom = max(int(freedom), 0)
            if freedom == 0:
                warn_user("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number "
                              "of observations.")  # fmt: skip
        centred = rows - unsqueeze(total(rows, 1) / whole, 1)
        product = mm(centred, transpose(centred, 0, 1))
    else:
        w = weights[0] if len(weights) == 1 else weights[0] * weights[1]
        whole = total(w)
        freedom = whole if less == 0 else whole - less if important is None else (
            whole - less * total(w * important) / whole
        )  # fmt: skip
        freedom = maximum(freedom, freedom * 0)
        centred = rows - unsqueeze(total(rows * w, 1) / whole, 1)
        product = mm(centred, transpose(centred * w, 0, 1))
    found = product / freedom
    found = found if x.dtype.kind == "f" else of_dtype(found, default_float())
    return reshape(found, ()) if isinstance(rows.shape[0], int) and rows.shape[0] == 1 else found


def _weights(name: str, given: Any, seen: Any, kinds: str) -> Any:
    """Weights as a tensor, one for each observation."""
    if given is None:
        return None
    from common.tensor.create import operand

    w = operand(given)
    if w.ndim > 1:
        raise ShapeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.ndim}")
    if w.dtype.kind not in kinds:
        wanted = "integral" if "i" in kinds else "floating point"
        raise DTypeError(f"cov(): expected {name} to have {wanted} dtype but got {name} with {w.dtype} dtype")
    if w.ndim == 1 and w.shape[0] != seen:
        raise ShapeError(f"cov(): expected {name} to have the same numel as there are observations in the input but "
                         f"got {w.shape[0]} != {seen}")  # fmt: skip
    if isinstance(w.payload, np.ndarray) and (w.payload < 0).any():
        raise ArgumentError(f"cov(): {name} cannot be negative")
    return w


def corrcoef(x: Any) -> Any:
    """The correlation matrix of variables, of which each row holds the observations of one; elements in [-1, 1].

    Parameters
    ----------
    x : (variables, observations), (observations,) or ().

    Raises
    ------
    ShapeError, DTypeError : see `cov`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.corrcoef(tw.tensor([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    c = cov(x)
    if c.ndim == 0:
        return c / c
    deviation = sqrt(diagonal(c))
    return clamp(c / unsqueeze(deviation, 1) / unsqueeze(deviation, 0), -1, 1)


__all__ = ["corrcoef", "cov"]
