"""Marks of PyTorch's quantisation, of which there is none; the same in both engines."""

from common.api.places import publish
from common.nn.quantization_marks import *  # noqa: F403
from common.nn.quantization_marks import __all__ as __all__

publish(__name__)
