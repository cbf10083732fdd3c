"""PyTorch's attributes of dtypes, which programs read: ``x.dtype.is_floating_point``.

Dtypes are numpy's, so tensors and arrays share them. numpy's class can be neither subclassed nor assigned to, so these
attributes stand in its dictionary, beside its own; numpy has none of these names.

>>> import dynamic as tw
>>> tw.float32.is_floating_point, tw.int64.is_signed, tw.uint8.itemsize
(True, True, 1)
"""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np

from common.core.errors import DTypeError


def _is_floating_point(self: np.dtype) -> bool:
    """Whether elements are floating point numbers; complex ones are not."""
    return self.kind == "f"


def _is_complex(self: np.dtype) -> bool:
    """Whether elements are complex numbers, which no tensor has."""
    return self.kind == "c"


def _is_signed(self: np.dtype) -> bool:
    """Whether there are negative numbers."""
    return self.kind in "ifc"


def _to_complex(self: np.dtype) -> np.dtype:
    """The dtype of complex numbers whose parts are of this one.

    Raises
    ------
    DTypeError : of integers and bools.
    """
    if self.kind not in "fc":
        raise DTypeError(f"to_complex(): there are no complex numbers with parts of {self}")
    return self if self.kind == "c" else np.result_type(self, np.complex64)


def _to_real(self: np.dtype) -> np.dtype:
    """The dtype of the parts of complex numbers; any other stays."""
    return np.empty(0, self).real.dtype if self.kind == "c" else self


ATTRIBUTES: dict[str, Any] = {
    "is_floating_point": property(_is_floating_point), "is_complex": property(_is_complex),
    "is_signed": property(_is_signed), "to_complex": _to_complex, "to_real": _to_real,
}  # fmt: skip


def install() -> None:
    """Give numpy's dtypes these attributes."""
    (members,) = gc.get_referents(np.dtype.__dict__)  # the dictionary behind the read-only view of it
    for name, value in ATTRIBUTES.items():
        members.setdefault(name, value)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.dtype))  # what was looked up before is forgotten
