"""Where libraries of PyTorch found `vmap` before `func` had it."""

from common.api.places import publish
from dynamic.eager.transforms import FUNC

__getattr__ = publish(__name__, {"vmap": FUNC["vmap"], "_vmap": FUNC["vmap"]})
