"""PyTorch's names of argument types, for annotations."""

import os
from typing import IO, Any

from common.core.devices import device

Number = int | float | bool
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[Any]

__all__ = ["Device", "FileLike", "Number"]
