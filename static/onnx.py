"""ONNX models, which compiled programs become."""

from common.api.machine.exporting import make
from common.api.places import publish
from static.export.onnx_model import export_onnx

_FUNCTIONS = make(export_onnx)

__path__: list[str] = []  # so that imports of modules below are told why there are none

__getattr__ = publish(__name__, _FUNCTIONS)
