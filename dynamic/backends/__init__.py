"""Libraries that PyTorch can use and this project does not; their switches change nothing."""

import sys

from common.api.machine.backends import libraries
from common.api.places import publish

_LIBRARIES = libraries(__name__)
sys.modules.update({f"{__name__}.{name}": library for name, library in _LIBRARIES.items()})

__getattr__ = publish(__name__, _LIBRARIES)
