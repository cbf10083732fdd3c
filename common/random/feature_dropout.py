"""Dropout of whole channels, and dropout that keeps mean and variance."""

from __future__ import annotations

import math
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError, ShapeError
from common.core.op import REGISTRY
from common.core.source_lines import warn_user
from common.random.generator import rand
from common.tensor.create import lift


def _kept(x: Any, p: float, shape: tuple[Any, ...]) -> Any:
    """1 for what is kept, 0 for what is dropped."""
    kept = REGISTRY["ge"](lift(rand(shape, dtype=x.dtype)), p)
    return REGISTRY["to"](kept, dtype=x.dtype, x_dtype=kept.dtype)


def _probability(p: Any) -> float:
    """`p` as a float of Python's: one of numpy's would decide the dtype of arrays."""
    if not 0 <= p <= 1:
        raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}")
    return float(p)


def _channels(x: Any, lead: int) -> tuple[Any, ...]:
    """The shape of one number per channel, which are the first `lead` dimensions."""
    return (*x.shape[:lead], *(1,) * (x.ndim - lead))


def _dropped(x: Any, p: float, training: bool, lead: int) -> Any:
    """Channels set to 0 with probability `p`, the others scaled."""
    if not training or p == 0:
        return x
    if x.home is not None and mode.current_trace() is None:
        with x.home:
            return _dropped(x, p, training, lead)
    return x * (_kept(x, p, _channels(x, lead)) * (1 / (1 - p) if p < 1 else 0.0))


def _by_rank(n: int, x: Any, p: float, training: bool, ranks: dict[int, int]) -> Any:
    p = _probability(p)
    if n > 1 and x.ndim >= 2 and x.ndim not in ranks:
        warn_user(
            f"Received a {x.ndim}-D input to dropout{n}d, of which channels are dropped along dimensions 0 and 1; to "
            "silence this warning, use dropout", UserWarning
        )  # fmt: skip
        return _dropped(x, p, training, 2)
    if x.ndim not in ranks:
        raise ShapeError(
            f"dropout{n}d: Expected {' or '.join(f'{rank}D' for rank in ranks)} input, but received a {x.ndim}D input"
        )
    if n == 2 and x.ndim == 3:
        warn_user(
            "dropout2d: Received a 3-D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired: (batch, channels, length); to silence this warning, use dropout1d", UserWarning
        )  # fmt: skip
    return _dropped(x, p, training, ranks[x.ndim])


def dropout1d(x: Any, p: float = 0.5, training: bool = True) -> Any:
    """`x` with whole channels set to 0 with probability `p`, the others scaled by 1 / (1 - p); `x` if not training.

    Parameters
    ----------
    x : (batch, channels, length) or (channels, length), floating point.
    p : probability, 0 <= p <= 1.
    training : whether anything is dropped.

    Raises
    ------
    ArgumentError : `p` is not in [0, 1].
    ShapeError : another number of dimensions.
    """
    return _by_rank(1, x, p, training, {2: 1, 3: 2})


def dropout2d(x: Any, p: float = 0.5, training: bool = True) -> Any:
    """`x` with whole channels set to 0 with probability `p`, the others scaled by 1 / (1 - p); `x` if not training.

    Parameters
    ----------
    x : (batch, channels, height, width), or (batch, channels, length), floating point.
    p : probability, 0 <= p <= 1.
    training : whether anything is dropped.

    Raises
    ------
    ArgumentError : `p` is not in [0, 1].
    ShapeError : another number of dimensions.
    """
    return _by_rank(2, x, p, training, {4: 2, 3: 2})


def dropout3d(x: Any, p: float = 0.5, training: bool = True) -> Any:
    """`x` with whole channels set to 0 with probability `p`, the others scaled by 1 / (1 - p); `x` if not training.

    Parameters
    ----------
    x : (batch, channels, depth, height, width), or without batch, floating point.
    p : probability, 0 <= p <= 1.
    training : whether anything is dropped.

    Raises
    ------
    ArgumentError : `p` is not in [0, 1].
    ShapeError : another number of dimensions.
    """
    return _by_rank(3, x, p, training, {5: 2, 4: 1})


#: Minus the limit of SELU at minus infinity: what dropped elements become.
_ALPHA = 1.7580993408473766


def _alpha(x: Any, p: float, training: bool, lead: int) -> Any:
    p = _probability(p)
    if not training or p == 0:
        return x
    if x.home is not None and mode.current_trace() is None:
        with x.home:
            return _alpha(x, p, training, lead)
    if p == 1:
        return x * 0.0
    a = 1 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    kept = _kept(x, p, _channels(x, lead))
    return x * (kept * a) + (kept * (_ALPHA * a) + _ALPHA * a * (p - 1))


def alpha_dropout(x: Any, p: float = 0.5, training: bool = False) -> Any:
    """`x` with elements set to SELU's limit with probability `p`, then scaled and shifted to keep mean and variance.

    Parameters
    ----------
    x : (...), floating point, of mean 0 and variance 1.
    p : probability, 0 <= p <= 1.
    training : whether anything is dropped.

    Raises
    ------
    ArgumentError : `p` is not in [0, 1].

    References
    ----------
    Klambauer and others, Self-normalizing neural networks, 2017.
    """
    return _alpha(x, p, training, x.ndim)


def feature_alpha_dropout(x: Any, p: float = 0.5, training: bool = False) -> Any:
    """`alpha_dropout` of whole channels.

    Parameters
    ----------
    x : (batch, channels, ...), floating point.
    p : probability, 0 <= p <= 1.
    training : whether anything is dropped.

    Raises
    ------
    ArgumentError : `p` is not in [0, 1].
    ShapeError : fewer than two dimensions.
    """
    if training and x.ndim < 2:
        raise ShapeError(f"Feature dropout requires at least 2 dimensions in the input, got {x.ndim}")
    return _alpha(x, p, training, 2)


__all__ = ["alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]
