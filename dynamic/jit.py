"""TorchScript's names, answered by `function`."""

from typing import Final as Final

from common.api.machine.scripting import make
from common.api.places import publish
from dynamic.eager.compile_module import compile as _compile

_FUNCTIONS = make(_compile)

__getattr__ = publish(__name__, _FUNCTIONS)
