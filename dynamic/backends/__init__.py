"""Libraries that PyTorch can use and this project does not; their switches change nothing."""

import sys
from typing import TYPE_CHECKING

from common.api.machine.backends import libraries
from common.core import absent
from common.tensor import boundary

_LIBRARIES = libraries(__name__)
globals().update(_LIBRARIES)
sys.modules.update({f"{__name__}.{name}": library for name, library in _LIBRARIES.items()})
__all__ = list(_LIBRARIES)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
