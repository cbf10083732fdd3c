"""The compiling engine: a function is traced once, differentiated, fused and compiled, like JAX or torch.compile.

>>> import numpy as np
>>> import static as tw
>>> @tw.function
... def f(x):
...     return (x * x).sum()
>>> tw.grad(f)(np.array([1.0, 2.0], np.float32))
tensor([2., 4.])
"""

# ruff: noqa: E402  the package is checked before anything is imported from it
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

_OWN = Path(__path__[0]).parent / "common" / "__init__.py"
_FOUND = getattr(find_spec("common"), "origin", None)
if not _FOUND or not _OWN.samefile(_FOUND):
    raise ImportError(
        f"static needs Twingrad's own package {str(_OWN.parent)!r}, but Python finds 'common' at {_FOUND}: rename "
        "that, or put it later in sys.path"
    )

from common.core.garbage import loading

with loading():
    from common.api import surface
    from common.core.absent_imports import explain_imports
    from common.core.lazy import Late
    from common.tensor import boundary
    from common.tensor.base import Tensor as Tensor
    from common.version import like_pytorch as __version__
    from static.api.binding import (
        EXPORTS,
        OF_PROGRAMS,
        ROOMS,
        SESSION,
        bind,
        bind_control,
        bind_creation,
        bind_of_programs,
        bind_room,
        bind_session,
        bind_transforms,
    )
    from static.jit.function import function as function

globals().update({**surface.MODES, **surface.DTYPES, **surface.PLAIN})

__all__ = list(
    surface.NAMES
    + surface.ENGINE_NAMES
    + ("compare", "debug", "nan_watch", "njit")
    + tuple(SESSION)
    + tuple(EXPORTS)
    + tuple(ROOMS)
)

if TYPE_CHECKING:  # the functions are bound from one list, which type checkers cannot follow
    from static import autograd, func, linalg, nn, optim, profiler, random, special, utils
    from static.jit.compile_module import compile as compile
    from static.jit.numba_calls import njit as njit
    from static.tools.compare_runs import compare as compare
    from static.tools.debugger import debug as debug
    from static.tools.nan_watch import nan_watch as nan_watch

    def __getattr__(name: str) -> Any: ...

else:
    _OWN_FUNCTIONS = Late(
        {
            "static.__main__": "install_as_torch",
            "static.jit.compile_module": "compile",
            "static.jit.numba_calls": "njit",
            "static.tools.compare_runs": "compare",
            "static.tools.debugger": "debug",
            "static.tools.nan_watch": "nan_watch",
        }
    )
    _TABLES = (
        (bind_of_programs, OF_PROGRAMS),
        (bind_room, ROOMS),
        (bind, surface.FUNCTIONS),
        (bind_creation, surface.CREATION),
        (bind_control, surface.CONTROL),
        (bind_control, surface.HOST),
        (bind_transforms, surface.TRANSFORMS),
        (bind_session, SESSION),
        *((surface.as_they_are, objects) for objects in (_OWN_FUNCTIONS, EXPORTS, *surface.SHARED)),
    )
    __getattr__, __dir__ = surface.on_demand(globals(), *_TABLES)

boundary.close(__name__)
explain_imports(__name__)
