"""PyTorch's names of argument types, for annotations."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from common.core.devices import device, layout
from common.tensor.base import TensorBase

Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[Any]

# Names that libraries import although they are not public.
_int, _float, _bool, _str = builtins.int, builtins.float, builtins.bool, builtins.str
_device, _layout, _dtype, _Number = device, layout, np.dtype, Number
_size = Sequence[int]
_TensorOrTensors = TensorBase | Sequence[TensorBase]
_TensorOrOptionalTensors = TensorBase | Sequence[TensorBase | None]

__all__ = ["Device", "FileLike", "Number"]
UNLISTED = ("_Number", "_TensorOrOptionalTensors", "_TensorOrTensors", "_bool", "_device", "_dtype", "_float", "_int",
            "_layout", "_size", "_str")  # fmt: skip
