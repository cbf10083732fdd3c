"""Special functions under the names of `torch.special`; some are SciPy's, see docs/numerics.md."""

from typing import Any

from common.api import surface
from common.ops.special import special_namespace
from dynamic.eager.binding import bind

_FUNCTIONS: dict[str, Any] = dict(sorted(special_namespace.FUNCTIONS.items()))
__all__ = list(_FUNCTIONS)

__getattr__, __dir__ = surface.on_demand(globals(), (bind, _FUNCTIONS))
