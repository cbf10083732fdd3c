"""ONNX models, which compiled programs become; the eager engine has none."""

from common.api.machine.exporting import make
from common.api.places import publish

_FUNCTIONS = make(None)

__path__: list[str] = []  # so that imports of modules below are told why there are none

__getattr__ = publish(__name__, _FUNCTIONS)
