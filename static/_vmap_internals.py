"""Where libraries of PyTorch found `vmap` before `func` had it."""

from common.api.places import publish
from static.api.transforms import FUNC

__all__: list[str] = []
vmap = _vmap = FUNC["vmap"]
__getattr__ = publish(__name__)
