"""Transforms of functions with the signatures of `torch.func`."""

from typing import TYPE_CHECKING, Any

from common.core import absent
from common.tensor import boundary
from dynamic.eager.transforms import FUNC

globals().update(FUNC)

__all__ = list(FUNC)

if TYPE_CHECKING:  # the names above are bound from one table, which type checkers cannot follow

    def __getattr__(name: str) -> Any: ...

else:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
