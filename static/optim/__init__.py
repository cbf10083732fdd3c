"""Optimisers; the same objects in both engines."""

from typing import TYPE_CHECKING

from common.api.places import open_places
from common.core import absent
from common.optim import *  # noqa: F403
from common.optim import __all__ as _names
from common.tensor import boundary
from static.optim import lr_scheduler, optimizer, swa_utils

open_places(__name__)

__all__ = list(_names)

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)

boundary.close(__name__)
