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

from common.api import surface
from common.tensor import boundary
from common.tensor.base import Tensor as Tensor
from common.version import __version__ as __version__
from dynamic import autograd, func, linalg, nn, optim, profiler, random, special, utils
from dynamic.eager.binding import bind, bind_creation
from dynamic.eager.compile_module import compile as compile
from dynamic.eager.function import function as function
from dynamic.eager.heap import keep_freed_memory
from dynamic.eager.transforms import TRANSFORMS

keep_freed_memory()

globals().update(
    {
        **surface.CONTROL,
        **TRANSFORMS,
        **surface.MODES,
        **surface.OUTSIDE,
        **surface.ACTS,
        **surface.HOST,
        **surface.THREADS,
        **surface.DTYPES,
        **surface.PLAIN,
        **surface.RANDOM,
    }
)

__all__ = list(surface.NAMES + surface.ENGINE_NAMES)

if TYPE_CHECKING:  # the functions are bound from one list, which type checkers cannot follow

    def __getattr__(name: str) -> Any: ...

else:
    _TABLES = (bind, surface.FUNCTIONS), (bind_creation, surface.CREATION)
    __getattr__, __dir__ = surface.on_demand(globals(), *_TABLES)

boundary.close(__name__)
