"""ONNX models, which compiled programs become."""

from typing import TYPE_CHECKING

from common.api.machine.exporting import make
from common.core import absent
from common.tensor import boundary
from static.export.onnx_model import export_onnx

_FUNCTIONS = make(export_onnx)
globals().update(_FUNCTIONS)
__all__ = list(_FUNCTIONS)

__path__: list[str] = []  # so that imports of modules below are told why there are none

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
