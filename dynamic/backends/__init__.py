"""Libraries that PyTorch can use and this project does not; their switches change nothing."""

import sys

from common.api.machine.backends import libraries
from common.tensor import boundary

_LIBRARIES = libraries(__name__)
globals().update(_LIBRARIES)
sys.modules.update({f"{__name__}.{name}": library for name, library in _LIBRARIES.items()})
__all__ = list(_LIBRARIES)

boundary.close(__name__)
