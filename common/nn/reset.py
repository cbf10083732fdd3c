"""Parameters drawn anew, as when a module was made."""

from __future__ import annotations

import inspect
from typing import Any

from common.core import mode


def reset_parameters(self: Any) -> None:
    """Draw the parameters anew, in place, as when the module was made; running statistics begin anew too."""
    kind = next(cls for cls in type(self).__mro__ if cls.__module__.startswith("common."))
    fresh = kind(**_arguments(self, kind))
    with mode.no_grad():
        for held, made in ((self._parameters, fresh._parameters), (self._buffers, fresh._buffers)):
            for name, leaf in held.items():
                if leaf is not None and made.get(name) is not None:
                    leaf.copy_(made[name])


def _arguments(module: Any, kind: type) -> dict[str, Any]:
    """The arguments that made a module: its attributes of these names; for a parameter, whether it exists."""
    given: dict[str, Any] = {}
    dtypes = [leaf.dtype for leaf in module._parameters.values() if leaf is not None]
    for name in list(inspect.signature(kind).parameters):
        if name in module._parameters:
            given[name] = module._parameters[name] is not None
        elif name == "dtype":
            given[name] = dtypes[0] if dtypes else None
        elif name != "device" and hasattr(module, name):
            given[name] = getattr(module, name)
    return given
