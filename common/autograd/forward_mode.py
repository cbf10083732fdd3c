"""Forward-mode derivatives: tensors that carry a tangent, see `common.autograd.forward_level`.

While a level is open, ops take the general path (`mode.tracing` is not 0) and go through it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from common.autograd.backward import view_of
from common.autograd.forward_level import Level
from common.core import mode
from common.core.errors import ArgumentError, GradientError
from common.core.switching import Change, Switching
from common.tensor.base import TensorBase
from common.tensor.write_log import owner_of


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`.

    Attributes
    ----------
    primal : the tensor without its tangent.
    tangent : of the same shape, None if it has none.
    """

    primal: Any
    tangent: Any


class dual_level(Switching):
    """Context manager: inside, tensors carry the tangents that `make_dual` gives them through every op.

    Raises
    ------
    GradientError : one is open already.

    Examples
    --------
    >>> import dynamic as tw
    >>> import dynamic.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(tw.tensor([3.0]), tw.tensor([1.0]))
    ...     fwAD.unpack_dual(x * x).tangent
    tensor([6.])
    """

    def _change(self) -> Change:
        if mode.dual_level.get() is not None:
            raise GradientError("Nested forward mode AD is not supported at the moment")
        level, (begin, end) = Level(), mode.watched()
        leave = partial(mode.dual_level.set, None), end, level.forget
        return Change((begin, partial(mode.dual_level.set, level)), leave, 0)


#: The manager that `enter_dual_level` has entered, for `exit_dual_level`.
_entered: list[dual_level] = []


def enter_dual_level() -> int:
    """Open a level, until `exit_dual_level`; returns 0, its number. The context manager is `dual_level`.

    Raises
    ------
    GradientError : one is open already.
    """
    manager = dual_level()
    number: int = manager.__enter__()
    _entered.append(manager)
    return number


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level that `enter_dual_level` has opened.

    Raises
    ------
    GradientError : there is none, or it has another number.
    """
    if not _entered or level not in (None, 0):
        raise GradientError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _entered.pop().__exit__(None, None, None)


def current_level() -> int:
    """The number of the open level; -1 if there is none."""
    return -1 if mode.dual_level.get() is None else 0


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    r"""A view of a tensor that carries a tangent.

    Parameters
    ----------
    tensor : floating point.
    tangent : (\\*tensor.shape), floating point; kept as it is if it lies in memory as `tensor` does, else a copy is; of
        another dtype, ops convert it.
    level : 0, or None.

    Raises
    ------
    GradientError : no level is open, the sizes differ, or `tangent` carries a tangent itself.
    ArgumentError : something that is not a floating point tensor.
    """
    open_level = mode.dual_level.get()
    if open_level is None or level not in (None, 0):
        raise GradientError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, x in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(x, TensorBase) or x.dtype.kind != "f":
            kind = x.dtype if isinstance(x, TensorBase) else type(x).__name__
            raise ArgumentError(f"Expected {name} to be floating point or complex, but got: {kind}")
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise GradientError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if open_level.tangent(tangent) is not None:
        raise GradientError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported."
        )
    with mode.activate_dual_level(None):
        dual = view_of(tensor)
        if not _lies_as(tensor.payload, tangent.payload):
            tangent = tangent.clone()
    open_level.set(dual, tangent, made=True)
    return dual


def _lies_as(x: Any, y: Any) -> bool:
    """Whether two arrays of one shape lie alike, each in as many elements of memory; what is traced lies in C order."""
    if not isinstance(y, np.ndarray):
        return not isinstance(x, np.ndarray) or x.flags.c_contiguous
    if not isinstance(x, np.ndarray):
        return True
    steps = [[s // a.itemsize for n, s in zip(a.shape, a.strides, strict=True) if n != 1] for a in (x, y)]
    return steps[0] == steps[1] and owner_of(x).size == owner_of(y).size


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """A view of a tensor without its tangent, and the tangent; None where there is none, or no level is open.

    Raises
    ------
    ArgumentError : it is no tensor.
    """
    if not isinstance(tensor, TensorBase):
        raise ArgumentError(f"unpack_dual(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    open_level = mode.dual_level.get()
    if open_level is None or level not in (None, 0):
        return UnpackedDualTensor(tensor, None)
    tangent = open_level.tangent(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    with mode.activate_dual_level(None):
        primal = view_of(tensor)
    open_level.set(primal, None, made=True)
    return UnpackedDualTensor(primal, tangent)


__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual",
]  # fmt: skip
