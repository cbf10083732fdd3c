"""`nn.init`: values that parameters begin with, written in place, without history.

References
----------
Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010 (xavier). He et al.,
Delving deep into rectifiers, 2015 (kaiming). Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep
linear neural networks, 2013 (orthogonal). Martens, Deep learning via Hessian-free optimization, 2010 (sparse).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from common.core import mode
from common.core.docstrings import sections_of
from common.core.errors import ArgumentError, ShapeError
from common.core.source_lines import warn_user
from common.random.generator import Generator
from common.tensor import create
from common.tensor.arrays import concrete
from common.tensor.base import TensorBase

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
           "sigmoid")  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which an activation asks weights to be larger: 1, tanh 5/3, relu sqrt(2), selu 3/4.

    Parameters
    ----------
    nonlinearity : name of the function in `nn.functional`.
    param : the negative slope of leaky_relu, 0.01 by default; its factor is sqrt(2 / (1 + slope^2)).

    Raises
    ------
    ArgumentError : an unknown name, or a slope that is no number.
    """
    if nonlinearity in _LINEAR:
        return 1.0
    known = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity in known:
        return known[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ArgumentError(f"Unsupported nonlinearity {nonlinearity}")
    if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
        raise ArgumentError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))


def _write(tensor: Any, name: str, values: Callable[[TensorBase], Any]) -> Any:
    if not isinstance(tensor, TensorBase):
        raise ArgumentError(f"{name}(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    with mode.no_grad():
        values(tensor)
    return tensor


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Any:
    """Fill with draws from U(a, b).

    Parameters
    ----------
    tensor : (...), written and returned.
    a, b : bounds.
    generator : where from; the default generator if None.
    """
    return _write(tensor, "uniform_", lambda x: x.uniform_(a, b, generator=generator))


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Any:
    """Fill with draws from N(mean, std^2).

    Parameters
    ----------
    tensor : (...), written and returned.
    mean, std : of the distribution.
    generator : where from; the default generator if None.
    """
    return _write(tensor, "normal_", lambda x: x.normal_(mean, std, generator=generator))


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Any:
    """Fill with draws from N(mean, std^2) given that they are in [a, b]: the inverse distribution of uniform draws.

    Parameters
    ----------
    tensor : (...), written and returned.
    mean, std, a, b : of the distribution.
    generator : where from; the default generator if None.
    """
    low, high = ((1.0 + math.erf((bound - mean) / std / math.sqrt(2.0))) / 2.0 for bound in (a, b))

    def draw(x: Any) -> None:
        x.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        x.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(a, b)

    return _write(tensor, "trunc_normal_", draw)


def constant_(tensor: Any, val: float) -> Any:
    """Fill with a number.

    Parameters
    ----------
    tensor : (...), written and returned.
    val : the number.
    """
    return _write(tensor, "constant_", lambda x: x.fill_(val))


def ones_(tensor: Any) -> Any:
    """Fill with 1.

    Parameters
    ----------
    tensor : (...), written and returned.
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Fill with 0.

    Parameters
    ----------
    tensor : (...), written and returned.
    """
    return constant_(tensor, 0.0)


def _copied(tensor: Any, name: str, values: Callable[[TensorBase], np.ndarray]) -> Any:
    return _write(tensor, name, lambda x: x.copy_(create.tensor(values(x), dtype=x.dtype)))


def _sizes(tensor: Any, name: str, least: int, most: int) -> tuple[int, ...]:
    shape = tuple(getattr(tensor, "shape", ()))
    if not least <= len(shape) <= most:
        wanted = {(2, 2): "only tensors with 2 dimensions are supported",
                  (3, 5): "only tensors with 3, 4, or 5 dimensions are supported"}.get(
            (least, most), f"only tensors with {least} or more dimensions are supported")  # fmt: skip
        raise ShapeError(f"{name}(): {wanted}, got sizes {shape}")
    return shape


def eye_(tensor: Any) -> Any:
    """Fill with the identity matrix.

    Parameters
    ----------
    tensor : (n, m), written and returned.
    """
    shape = _sizes(tensor, "eye_", 2, 2)
    return _copied(tensor, "eye_", lambda x: np.eye(shape[0], shape[1]))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Fill the weights of a convolution so that it keeps its input, as far as there are channels.

    Parameters
    ----------
    tensor : (out, in, ...) with 1 to 3 further dimensions, written and returned.
    groups : of the convolution.

    Raises
    ------
    ShapeError : another number of dimensions.
    ArgumentError : `out` is not divisible by `groups`.
    """
    shape = _sizes(tensor, "dirac_", 3, 5)
    if groups < 1 or shape[0] % groups:
        raise ArgumentError("dim 0 must be divisible by groups")

    def values(x: Any) -> np.ndarray:
        filled, per_group = np.zeros(shape), shape[0] // groups
        for group in range(groups):
            for d in range(min(per_group, shape[1])):
                filled[(group * per_group + d, d, *(n // 2 for n in shape[2:]))] = 1
        return filled

    return _copied(tensor, "dirac_", values)


def _calculate_fan_in_and_fan_out(tensor: Any, name: str = "_calculate_fan_in_and_fan_out") -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has; scripts call it by PyTorch's private name."""
    shape = tuple(getattr(tensor, "shape", ()))
    if len(shape) < 2:
        raise ShapeError(
            f"{name}(): Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got {shape}"
        )
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Generator | None = None) -> Any:
    """Fill with draws from U(-a, a), a = gain sqrt(6 / (fan_in + fan_out)).

    Parameters
    ----------
    tensor : (out, in, ...), written and returned.
    gain : factor, see `calculate_gain`.
    generator : where from; the default generator if None.

    Raises
    ------
    ShapeError : less than two dimensions.
    """
    a = math.sqrt(3.0) * gain * math.sqrt(2.0 / max(sum(_calculate_fan_in_and_fan_out(tensor, "xavier_uniform_")), 1))
    return uniform_(tensor, -a, a, generator)


@sections_of(xavier_uniform_)
def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Generator | None = None) -> Any:
    """Fill with draws from N(0, s^2), s = gain sqrt(2 / (fan_in + fan_out))."""
    fans = _calculate_fan_in_and_fan_out(tensor, "xavier_normal_")
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / max(sum(fans), 1)), generator)


def _calculate_correct_fan(tensor: Any, mode: str, name: str = "_calculate_correct_fan") -> int:
    """One of the two, by `mode`; a private name of PyTorch as well."""
    if str(mode).lower() not in ("fan_in", "fan_out"):
        raise ArgumentError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor, name)[mode.lower() == "fan_out"]


def _scale(tensor: Any, a: float, mode: str, nonlinearity: str, name: str) -> float:
    if 0 in tensor.shape:
        warn_user("Initializing zero-element tensors is a no-op")
        return 0.0
    fan = _calculate_correct_fan(tensor, mode, name)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Any:
    """Fill with draws from U(-b, b), b = gain sqrt(3 / fan).

    Parameters
    ----------
    tensor : (out, in, ...), written and returned.
    a : negative slope of leaky_relu.
    mode : "fan_in" or "fan_out".
    nonlinearity : see `calculate_gain`.
    generator : where from; the default generator if None.

    Raises
    ------
    ShapeError : less than two dimensions.
    ArgumentError : another mode, or an unknown nonlinearity.
    """
    bound = math.sqrt(3.0) * _scale(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Any:
    """Fill with draws from N(0, s^2), s = gain / sqrt(fan); see `kaiming_uniform_`."""
    return normal_(tensor, 0.0, _scale(tensor, a, mode, nonlinearity, "kaiming_normal_"), generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Generator | None = None) -> Any:
    """Fill with orthonormal rows or columns, of the QR factors of normal draws.

    Parameters
    ----------
    tensor : (rows, ...), the dimensions after the first taken as one; written and returned.
    gain : factor.
    generator : where from; the default generator if None.

    Raises
    ------
    ShapeError : less than two dimensions.
    """
    shape = _sizes(tensor, "orthogonal_", 2, 1 << 30)

    def values(x: Any) -> np.ndarray:
        drawn = x.normal_(0, 1, generator=generator)
        flat = concrete(drawn).reshape(shape[0], -1).astype(np.float64)
        wide = flat.shape[0] < flat.shape[1]
        q, r = np.linalg.qr(flat.T if wide else flat)
        q = q * np.sign(np.diag(r))
        return np.asarray((q.T if wide else q).reshape(shape) * gain)

    return _copied(tensor, "orthogonal_", values) if math.prod(shape) else tensor


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Any:
    """Fill with draws from N(0, std^2), and set a part of each column to 0.

    Parameters
    ----------
    tensor : (n, m), written and returned.
    sparsity : the part of each column that is 0.
    std : of the others.
    generator : where from; the default generator if None.
    """
    from common.random.orders import randperm

    n, m = _sizes(tensor, "sparse_", 2, 2)

    def values(x: Any) -> np.ndarray:
        filled = concrete(x.normal_(0, std, generator=generator)).copy()
        for column in range(m):
            filled[concrete(randperm(n, generator=generator))[: math.ceil(sparsity * n)], column] = 0
        return filled

    return _copied(tensor, "sparse_", values)


def _of_long_ago(function: Callable[..., Any]) -> Any:
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warn_user(f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.", FutureWarning)
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name[:-1]
    return call


_FORMER = (uniform_, normal_, constant_, eye_, dirac_, xavier_uniform_, xavier_normal_, kaiming_uniform_,
           kaiming_normal_, orthogonal_, sparse_)  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (calculate_gain, trunc_normal_, ones_, zeros_, *_FORMER)},
    **{f.__name__[:-1]: _of_long_ago(f) for f in _FORMER},
}
