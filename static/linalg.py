"""Linear algebra under the names of `torch.linalg`; factorisations are LAPACK's, see docs/numerics.md."""

from typing import Any

from common.api import surface
from common.core import errors
from common.ops.linalg import linalg_namespace
from static.api.binding import bind

_FUNCTIONS: dict[str, Any] = dict(sorted(linalg_namespace.FUNCTIONS.items()))
__all__ = list(_FUNCTIONS)

__getattr__, __dir__ = surface.on_demand(globals(), (bind, _FUNCTIONS))
LinAlgError = errors.LinAlgError
