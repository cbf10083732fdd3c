"""TorchScript's names, answered by `function`."""

from typing import TYPE_CHECKING

from common.api.machine.scripting import make
from common.core import absent
from common.tensor import boundary
from dynamic.eager.compile_module import compile as _compile

_FUNCTIONS = make(_compile)
globals().update(_FUNCTIONS)
__all__ = list(_FUNCTIONS)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
