"""Division with a whole quotient, and its remainders. Integer division by zero raises, whatever the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.dispatch import called
from common.core.dtypes import compute_dtypes, number_spec
from common.core.errors import ArgumentError, DivisionByZeroError
from common.core.op import NativeCall, Op
from common.core.python_numbers import as_array
from common.core.spec import Spec, numel
from common.kernels.math import division as d
from common.ops._define import elementwise, kernel
from common.ops._samples import Samples, away_from_zero, whole
from common.ops.math import arithmetic
from common.ops.math.arithmetic import zeros_like
from common.ops.math.cast import to


def _divisible(rng: Any, dtype: Any) -> list[Any]:
    """Dividends and divisors whose quotient is not next to a whole number."""
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((4, 3), (4, 3)), ((4, 3), (3,)), ((), (5,))]
    out: list[Any] = []
    for a, b in shapes:
        y = away_from_zero(rng, b, dtype)
        x = (rng.integers(-3, 4, np.broadcast_shapes(a, b)) + rng.uniform(0.2, 0.8, np.broadcast_shapes(a, b))) * y
        out.append(((np.asarray(x, dtype), y), {}))
    return out


samples: Samples = _divisible

_trunc_divide = elementwise(
    "trunc_divide", lambda a, b: d.trunc_divide(a, b),
    (lambda g: zeros_like(g),
     lambda g: zeros_like(g)),
    doc="trunc(a / b). d/da = d/db = 0.", refuses="b", costly=True, samples=samples, node_name="Div",
)  # fmt: skip

_floor_divide = elementwise(
    "floor_divide", lambda a, b: d.floor_divide(a, b),
    (lambda g: zeros_like(g),
     lambda g: zeros_like(g)),
    doc="The largest whole number <= a / b. d/da = d/db = 0.", refuses="b", costly=True, samples=samples,
)  # fmt: skip

_fmod = elementwise(
    "fmod", lambda a, b: d.fmod(a, b),
    (lambda g: g,
     lambda g, a, b: -g * _trunc_divide(a, b)),
    doc="a - trunc(a / b) b, exact. d/da = 1, d/db = -trunc(a / b).", refuses="b", costly=True, samples=samples,
)  # fmt: skip

_remainder = elementwise(
    "remainder", lambda a, b: d.remainder(a, b),
    (lambda g: g,
     lambda g, a, b: -g * _floor_divide(a, b)),
    doc="a - floor(a / b) b, of the sign of b: fmod, plus b where the signs differ. d/da = 1, d/db = -floor(a / b).",
    refuses="b", costly=True, samples=samples,
)  # fmt: skip


def _native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
    source = d.divisor_source(specs[0].dtype)
    return [NativeCall(source, "divisor", (numel(specs[0].shape),), errors={d.ZERO: _message(attrs["user"])})]


def _message(user: str) -> str:
    return f"{user}(): integer division by zero"


divisor = kernel(
    "divisor", ("x",), lambda x, *, user: x, _native, lambda x, user: x.copy(),
    samples=lambda rng, dtype: [((whole(rng, (3, 4), dtype),), {"user": "floor_divide"})],
    doc="Integers, none of which is zero: the divisors of op `user`.", attrs=("user",),
)  # fmt: skip


def _checked(op: Op, a: Any, b: Any, user: str) -> Any:
    """The op on operands of which an integer divisor is known not to be zero; `user` is the function called.

    Raises
    ------
    DivisionByZeroError : the op computes in integers, and b has a zero; inside a trace when the program runs.
    """
    if type(b) is int and 0 < abs(b) < 128:  # no dtype of integers wraps it to 0
        return op(a, b)
    if type(b) is float or getattr(getattr(b, "dtype", None), "kind", "") == "f":
        return op(a, b)
    dtype = compute_dtypes(op, (_spec(a), _spec(b)))[0]
    if dtype.kind not in "iu":
        return op(a, b)
    if isinstance(b, (bool, int)):
        if np.array(b).astype(dtype) == 0:
            raise DivisionByZeroError(_message(user))
        return op(a, b)
    if b.dtype != dtype:
        b = to(b, dtype=dtype, x_dtype=b.dtype)
    return op(a, divisor(b, user=user))


def _spec(x: Any) -> Spec:
    from common.tensor.base import spec_of

    if isinstance(x, (bool, int, float)):
        return number_spec(x)
    return spec_of(as_array(x) if isinstance(x, np.ndarray) else x)  # which refuses an array of no numbers


def floor_divide(a: Any, b: Any) -> Any:
    """The quotient rounded down; the operator ``//``.

    Parameters
    ----------
    a, b : (...) numbers, broadcast against each other. Two ints give ints, which wrap: INT_MIN // -1 is INT_MIN.

    Raises
    ------
    DivisionByZeroError : integer division by zero.
    DTypeError : bools.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.tensor([-7, 7]) // 2, tw.tensor([-7.0, 7.0]) // 0.0
    (tensor([-4,  3]), tensor([-inf, inf]))
    """
    return _checked(_floor_divide, a, b, "floor_divide")


def remainder(a: Any, b: Any) -> Any:
    """The remainder with the sign of the divisor, exact for all floats; the operator ``%``.

    Parameters
    ----------
    a, b : (...) numbers, broadcast against each other. A zero remainder of floats has the sign of a, as in PyTorch.
        Where the signs differ b is added, which rounds: ``-1e-20 % 1.0`` is 1.0, as in Python.

    Raises
    ------
    DivisionByZeroError : integer division by zero.
    DTypeError : bools.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.remainder(tw.tensor([-3.0, -1.0, 5.0]), 2), divmod(tw.tensor([-7, 7]), 3)
    (tensor([1., 1., 1.]), (tensor([-3,  2]), tensor([2, 1])))
    """
    return _checked(_remainder, a, b, "remainder")


def fmod(a: Any, b: Any) -> Any:
    """The remainder with the sign of the dividend, as C's fmod: exact for all floats.

    Parameters
    ----------
    a, b : (...) numbers, broadcast against each other.

    Raises
    ------
    DivisionByZeroError : integer division by zero.
    DTypeError : bools.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.fmod(tw.tensor([-3.0, 1e30], dtype=tw.float64), 7)
    tensor([-3.,  5.], dtype=float64)
    """
    return _checked(_fmod, a, b, "fmod")


def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """The quotient; the operator ``/``.

    Parameters
    ----------
    a, b : (...) numbers, broadcast against each other.
    rounding_mode : None for true division, in which ints become float32; "trunc" rounds towards zero, "floor" down,
        and ints stay ints.

    Raises
    ------
    ArgumentError : another rounding mode.
    DivisionByZeroError : integer division by zero, with a rounding mode.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([-7, 7])
    >>> tw.div(x, 2), tw.div(x, 2, rounding_mode="trunc"), tw.div(x, 2, rounding_mode="floor")
    (tensor([-3.5000,  3.5000]), tensor([-3,  3]), tensor([-4,  3]))
    """
    if rounding_mode is None:
        return arithmetic.div(a, b)
    if rounding_mode not in ("trunc", "floor"):
        raise ArgumentError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
        )
    return called(_checked(_trunc_divide if rounding_mode == "trunc" else _floor_divide, a, b, "div"), "DivBackward2")


def divide(a: Any, b: Any, *, rounding_mode: str | None = None) -> Any:
    """Another name of `div`.

    Parameters
    ----------
    a, b, rounding_mode : see `div`.
    """
    return div(a, b, rounding_mode=rounding_mode)


def true_divide(a: Any, b: Any) -> Any:
    """Another name of `div` without a rounding mode.

    Parameters
    ----------
    a, b : (...) numbers, broadcast against each other.
    """
    return arithmetic.div(a, b)


__all__ = ["div", "divide", "floor_divide", "fmod", "remainder", "true_divide"]
