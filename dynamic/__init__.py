"""The eager engine: operations run at once and are recorded as they run, like PyTorch.

>>> import dynamic as tw
>>> x = tw.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
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
        f"dynamic needs Twingrad's own package {str(_OWN.parent)!r}, but Python finds 'common' at {_FOUND}: rename "
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
    from dynamic.eager.binding import bind, bind_creation, bind_transforms
    from dynamic.eager.heap import keep_freed_memory

keep_freed_memory()

globals().update({**surface.MODES, **surface.DTYPES, **surface.PLAIN})

__all__ = list(surface.NAMES + surface.ENGINE_NAMES)

if TYPE_CHECKING:  # the functions are bound from one list, which type checkers cannot follow
    from dynamic import autograd, func, linalg, nn, optim, profiler, random, special, utils
    from dynamic.eager.compile_module import compile as compile
    from dynamic.eager.function import function as function

    def __getattr__(name: str) -> Any: ...

else:
    _OWN_FUNCTIONS = Late(
        {
            "dynamic.eager.function": "function",
            "dynamic.eager.compile_module": "compile",
            "dynamic.__main__": "install_as_torch",
        }
    )
    _TABLES = (
        (bind, surface.FUNCTIONS),
        (bind_creation, surface.CREATION),
        (bind_transforms, surface.TRANSFORMS),
        *((surface.as_they_are, objects) for objects in (_OWN_FUNCTIONS, surface.CONTROL, surface.HOST)),
        *((surface.as_they_are, objects) for objects in surface.SHARED),
    )
    __getattr__, __dir__ = surface.on_demand(globals(), *_TABLES)

boundary.close(__name__)
explain_imports(__name__)
