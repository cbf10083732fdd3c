"""The names of the Python array API standard, version 2024.12: what `x.__array_namespace__()` gives.

Libraries that compute with any array ask an array for this namespace. Its functions have the standard's names,
arguments and promotion; what they compute is defined by the ops that the engines have, so they can be traced and
differentiated. Each file has the functions of one chapter of the standard.

Source: Consortium for Python Data API Standards, Python array API standard, 2024.12.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from common.core import devices, dtypes
from common.core.errors import ArgumentError, MissingAttributeError
from common.core.lazy import Late
from common.tensor import boundary

VERSION = "2024.12"
_KNOWN = ("2021.12", "2022.12", "2023.12", VERSION)
_HERE = __name__
_FUNCTIONS = Late(
    {
        f"{_HERE}.array_creation": "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid "
        "ones ones_like tril triu zeros zeros_like",
        f"{_HERE}.array_dtypes": "astype can_cast finfo iinfo isdtype result_type __array_namespace_info__",
        f"{_HERE}.array_elementwise": "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift "
        "bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp "
        "expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p "
        "log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative "
        "nextafter not_equal positive pow real reciprocal remainder round sign signbit sin sinh square sqrt subtract "
        "tan tanh trunc where",
        f"{_HERE}.array_reductions": "all any argmax argmin count_nonzero cumulative_prod cumulative_sum diff max mean "
        "min prod std sum var",
        f"{_HERE}.array_shapes": "broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis "
        "permute_dims repeat reshape roll squeeze stack tile unstack",
        f"{_HERE}.array_searching": "argsort isin nonzero searchsorted sort take take_along_axis unique_all "
        "unique_counts unique_inverse unique_values",
        f"{_HERE}.array_products": "matmul matrix_transpose tensordot vecdot",
    }
)
DTYPES: dict[str, Any] = {
    "bool": dtypes.bool_, "int8": dtypes.int8, "int16": dtypes.int16, "int32": dtypes.int32, "int64": dtypes.int64,
    "uint8": dtypes.uint8, "float32": dtypes.float32, "float64": dtypes.float64,
}  # fmt: skip
_PLAIN: dict[str, Any] = {
    **DTYPES, "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None, "pi": math.pi,
    "__array_api_version__": VERSION,
}  # fmt: skip
__all__ = list(_FUNCTIONS) + list(_PLAIN) + ["linalg"]


def __getattr__(name: str) -> Any:
    if name in _PLAIN:
        return _PLAIN[name]
    if name == "linalg":
        from common.api.standard import array_linalg

        boundary.close(array_linalg.__name__)
        return array_linalg
    if name not in _FUNCTIONS:
        raise MissingAttributeError(f"the namespace of the array API standard has no {name!r} here")
    function = globals()[name] = boundary.published(_FUNCTIONS[name])
    return function


def __dir__() -> list[str]:
    return sorted(__all__)


def array_namespace(self: Any, /, *, api_version: str | None = None) -> Any:
    """The functions of the Python array API standard for tensors, see docs/ecosystem.md.

    Parameters
    ----------
    api_version : of the standard, such as "2024.12"; by default that one.

    Raises
    ------
    ArgumentError : the version is not known.
    """
    if api_version is not None and api_version not in _KNOWN:
        raise ArgumentError(f"__array_namespace__(): versions are {', '.join(_KNOWN)}; not {api_version!r}")
    return sys.modules[__name__]


def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """The tensor, which is on the CPU already.

    Parameters
    ----------
    device : "cpu".
    stream : None; the CPU has none.
    """
    devices.on_cpu(device, "to_device")
    return self


METHODS: dict[str, Any] = {"__array_namespace__": array_namespace, "to_device": to_device}
