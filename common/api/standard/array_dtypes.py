"""Functions of dtypes, and the namespace's description of itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from common.api import typed
from common.core import devices, dtypes
from common.core.dtypes import result_dtype
from common.core.errors import ArgumentError
from common.core.spec import Spec
from common.tensor.arrays import known_dtype
from common.tensor.base import TensorBase, spec_of
from common.tensor.create import operand

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type", "__array_namespace_info__"]

_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip
_NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64")


def _dtype_of(x: Any) -> np.dtype:
    return x.dtype if isinstance(x, TensorBase) else known_dtype(x)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """A tensor of another dtype.

    Parameters
    ----------
    x : (...).
    dtype : of the result.
    copy : give a copy also if the dtype is that of `x`.
    device : "cpu" or None.
    """
    devices.on_cpu(device, "astype")
    found = operand(x, x)
    made = found.to(known_dtype(dtype))
    return made.clone() if made is found and copy else made


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion of the two dtypes gives the second.

    Parameters
    ----------
    from_ : dtype or tensor.
    to : dtype.
    """
    source, target = _dtype_of(from_), known_dtype(to)
    return bool(np.can_cast(source, target))


class FloatLimits(NamedTuple):
    """The result of `finfo`: bits of an element, limits as Python's floats, and the dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


class IntLimits(NamedTuple):
    """The result of `iinfo`: bits of an element, limits, and the dtype."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type: Any, /) -> FloatLimits:
    """Limits of a floating-point dtype.

    Parameters
    ----------
    type : dtype or tensor.

    Raises
    ------
    DTypeError : it is not floating point.
    """
    kind = _dtype_of(type)
    x = typed.finfo(kind)
    return FloatLimits(x.bits, x.eps, x.max, x.min, x.smallest_normal, kind)


def iinfo(type: Any, /) -> IntLimits:
    """Limits of an integer dtype.

    Parameters
    ----------
    type : dtype or tensor.

    Raises
    ------
    DTypeError : it is not one of integers.
    """
    kind = _dtype_of(type)
    x = typed.iinfo(kind)
    return IntLimits(x.bits, x.max, x.min, kind)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is another, or of a kind.

    Parameters
    ----------
    dtype : to be judged.
    kind : dtype, one of the standard's kinds such as "real floating", or a tuple of these.

    Raises
    ------
    ArgumentError : there is no such kind.
    """
    found = known_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(found, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ArgumentError(f"isdtype(): kinds are {', '.join(map(repr, _KINDS))}; not {kind!r}")
        return found.kind in _KINDS[kind]
    return bool(found == known_dtype(kind))


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype of what is computed of all of these.

    Parameters
    ----------
    arrays_and_dtypes : tensors and dtypes, which count alike, and numbers, which count less.

    Raises
    ------
    ArgumentError : there is none but numbers.
    """
    numbers = [x for x in arrays_and_dtypes if isinstance(x, (bool, int, float))]
    others = [_dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, (bool, int, float))]
    if not others:
        raise ArgumentError("result_type(): there must be an array or a dtype")
    target = others[0]
    for kind in others[1:]:
        target = typed.promote_types(target, kind)
    for number in numbers:
        target, _ = result_dtype([Spec((1,), target, False), spec_of(number)])
    return target


class NamespaceInfo:
    """The result of `__array_namespace_info__`: dtypes, devices and abilities."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean indices and sizes that depend on data are there, except in a trace; up to 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The CPU."""
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """Dtypes of arrays that are made of Python's numbers.

        Parameters
        ----------
        device : "cpu" or None.
        """
        devices.on_cpu(device, "default_dtypes")
        return {"real floating": dtypes.default_float(), "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The dtypes that there are, by name.

        Parameters
        ----------
        device : "cpu" or None.
        kind : one of the standard's, or a tuple of them; None for all.
        """
        devices.on_cpu(device, "dtypes")
        found = {name: np.dtype(name) for name in _NAMES}
        return found if kind is None else {name: x for name, x in found.items() if isdtype(x, kind)}

    def devices(self) -> list[str]:
        """The CPU only."""
        return ["cpu"]


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  the standard's name
    """Describe the namespace: its dtypes, devices and abilities."""
    return NamespaceInfo()
